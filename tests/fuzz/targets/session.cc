// Bytes as requests of a runtime server's client, who has some buffers and a program.
#include "hlo/error.h"
#include "remote_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  remote::wire::Requests requests;
  if (!requests.ParseFromArray(data, static_cast<int>(size))) return 0;
  remote::Peer peer;
  peer.Send(remote::SumRequests());
  try {
    peer.Send(std::move(requests));
  } catch (const hlo::Error&) {
    // The session ends.
  }
  return 0;
}
