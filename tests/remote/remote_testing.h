// What the tests of the runtime server share.
#pragma once

#include <string>

#include "engines.h"
#include "hlo/bytecode.h"
#include "pjrt/client/compile_options.h"
#include "remote/messages.h"
#include "remote/server/server.h"

namespace remote {

// Of this process, for all tests.
Server& TestServer();
std::string TestAddress();

// Requests for: buffer 1 = (1, 2, 3, 4), executable 2 = sum and product, buffers 3 and 4 = its
// results for buffer 1 twice, whose completion is reply 3; reply 4: what buffer 3 holds.
inline wire::Requests SumRequests() {
  wire::Requests requests;
  wire::Request* request = requests.add_requests();
  request->set_reply(1);
  wire::BufferFromHost& host = *request->mutable_buffer_from_host();
  host.set_buffer(1);
  ToMessage(pjrt::kVector, host.mutable_shape());
  host.mutable_place()->set_device(0);
  const float values[] = {1, 2, 3, 4};
  host.set_data(values, sizeof values);
  request = requests.add_requests();
  request->set_reply(2);
  wire::Compile& compile = *request->mutable_compile();
  compile.set_executable(2);
  compile.set_format("mlir");
  compile.set_code(hlo::WriteBytecode(*pjrt::SumAndProduct()));
  compile.set_options(pjrt::CompileOptions().Serialize());
  request = requests.add_requests();
  request->set_reply(3);
  wire::Execute& execute = *request->mutable_execute();
  execute.set_executable(2);
  execute.set_num_devices(1);
  execute.add_arguments(1);
  execute.add_arguments(1);
  execute.set_first_result(3);
  request = requests.add_requests();
  request->set_reply(4);
  request->mutable_read()->set_buffer(3);
  return requests;
}

}  // namespace remote
