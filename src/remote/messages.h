// The messages of remote.proto from and to what they stand for.
#pragma once

#include <memory>
#include <new>
#include <string>

#include "hlo/error.h"
#include "hlo/shape.h"
#include "pjrt/client/named_value.h"
#include "remote/remote.pb.h"

namespace remote {

namespace wire = ::torch_xla::remote;

// Client and server of different numbers do not talk to each other.
inline constexpr uint32_t kProtocol = 4;

// Bytes. What is larger than an inline array travels through shared memory or in pieces.
inline constexpr size_t kMostMessageBytes = size_t{4} << 20;
inline constexpr size_t kMostPieceBytes = size_t{1} << 20;
inline constexpr size_t kMostRequests = 4096;  // in a message
inline constexpr size_t kMostInlineBytes = size_t{64} << 10;
// How long, over TLS, the other side may be silent before it counts as lost.
inline constexpr double kLostAfterSeconds = 330;

// Results no larger, and no more of an execution, come with the word that they are there: a loss
// that is read each step costs no second round trip.
inline constexpr int64_t kMostSmallResultBytes = 4096;
inline constexpr size_t kMostSmallResults = 8;

// A message that `fill` makes. Protobuf cannot destroy one in which an allocation has failed: it is
// left where it is.
template <typename Message, typename Fill>
std::unique_ptr<Message> Make(const Fill& fill) {
  auto message = std::make_unique<Message>();
  try {
    fill(*message);
  } catch (const std::bad_alloc&) {
    (void)message.release();
    throw;
  }
  return message;
}

// Throws hlo::Error for what is no message of requests, or one of too many.
wire::Requests ParseRequests(const std::string& bytes);

// Throws hlo::Error for what is no element type, and for sizes that cannot be.
hlo::Shape FromMessage(const wire::Shape& message);
void ToMessage(const hlo::Shape& shape, wire::Shape* message);

pjrt::NamedValues FromMessage(const google::protobuf::RepeatedPtrField<wire::NamedValue>& values);
void ToMessage(const pjrt::NamedValues& values,
               google::protobuf::RepeatedPtrField<wire::NamedValue>* messages);

// The clock of profiles.
int64_t NanosecondsSinceEpoch();

hlo::Error FromMessage(const wire::Error& message);
void ToMessage(const hlo::Error& error, wire::Error* message);

}  // namespace remote
