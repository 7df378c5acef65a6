// What the tests of the runtime server share.
#pragma once

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engines.h"
#include "hlo/bytecode.h"
#include "pjrt/client/compile_options.h"
#include "remote/dial.h"
#include "remote/messages.h"
#include "remote/remote.grpc.pb.h"
#include "remote/server/server.h"
#include "remote/server/session.h"

namespace remote {

// Of this process, for all tests.
Server& TestServer();
std::string TestAddress();

// In the file that clients of this process use.
inline constexpr char kToken[] = "the token of these tests";

// Of a server on any port of this machine.
inline ServerOptions TestOptions() {
  ServerOptions options;
  options.address = "localhost:0";
  options.plugin_path = PLUGIN_CPU;
  options.plugin_options = {{"cpu_device_count", int64_t{2}}};
  options.token = kToken;
  return options;
}

// To a server at a local address.
inline std::shared_ptr<grpc::Channel> TestChannel(const std::string& address) {
  return grpc::CreateCustomInsecureChannelFromFd(address, Dial(address, kToken).release(), {});
}

inline wire::Packet PacketOf(const wire::Requests& requests) {
  wire::Packet packet;
  packet.set_requests(requests.SerializeAsString());
  return packet;
}

using ClientStream = grpc::ClientReaderWriter<wire::Packet, wire::Replies>;

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

inline const Runtime& TestRuntime() {
  static const auto* runtime = new Runtime(PLUGIN_CPU, {{"cpu_device_count", int64_t{2}}});
  return *runtime;
}

// A session without a network.
class Peer {
 public:
  Peer()
      : outbox_(std::make_shared<Outbox>(
            [this](const wire::Replies& batch) {
              std::lock_guard lock(mutex_);
              for (const wire::Reply& reply : batch.replies()) replies_[reply.reply()] = reply;
              return true;
            },
            [] {})) {}
  ~Peer() { outbox_->Close(); }

  void Send(wire::Requests requests) {
    session.Handle(std::move(requests));
    outbox_->Send();
  }

  // The last reply of the number. Programs may run on the device's own thread.
  wire::Reply WaitFor(uint64_t number) {
    for (int i = 0; i < 5000; ++i) {
      if (std::optional<wire::Reply> reply = Find(number)) return *reply;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      Send({});
    }
    ADD_FAILURE() << "no reply " << number;
    return {};
  }

  // The reply to a request, which gets the number 100.
  wire::Reply Ask(const std::function<void(wire::Request&)>& fill) {
    SendOne(fill);
    return WaitFor(100);
  }

  // The error of a request that fails alone, at once.
  std::string ErrorOf(const std::function<void(wire::Request&)>& fill) {
    SendOne(fill);
    return Find(100).value_or(wire::Reply()).error().message();
  }

 private:
  std::optional<wire::Reply> Find(uint64_t number) {
    std::lock_guard lock(mutex_);
    const auto found = replies_.find(number);
    return found == replies_.end() ? std::nullopt : std::make_optional(found->second);
  }

  void SendOne(const std::function<void(wire::Request&)>& fill) {
    wire::Requests requests;
    wire::Request& request = *requests.add_requests();
    request.set_reply(100);
    fill(request);
    {
      std::lock_guard lock(mutex_);
      replies_.erase(100);
    }
    Send(std::move(requests));
  }

  std::mutex mutex_;
  std::map<uint64_t, wire::Reply> replies_;
  std::shared_ptr<Outbox> outbox_;

 public:
  Session session{TestRuntime(), outbox_};
};

}  // namespace remote
