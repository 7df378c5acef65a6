// What tests of our plugin through the bare C interface share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "engines.h"
#include "pjrt/c_api.h"

namespace pjrt {

inline const PJRT_Api* Api() {
  static const PJRT_Api* api = [] {
    const Engine engine = OurEngine();
    return engine.path.empty() ? nullptr : &Plugin::Load(engine.path).api();
  }();
  return api;
}

template <typename Args>
Args New() {
  Args args{};
  args.struct_size = sizeof(Args);
  return args;
}

// Frees the error and returns its code; 0 for none.
inline int CodeOf(PJRT_Error* error) {
  if (error == nullptr) return 0;
  auto code = New<PJRT_Error_GetCode_Args>();
  code.error = error;
  EXPECT_EQ(Api()->PJRT_Error_GetCode(&code), nullptr);
  auto message = New<PJRT_Error_Message_Args>();
  message.error = error;
  Api()->PJRT_Error_Message(&message);
  EXPECT_GT(message.message_size, 5u);
  auto destroy = New<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  Api()->PJRT_Error_Destroy(&destroy);
  return code.code;
}

#define CALL(name, args) CodeOf(Api()->PJRT_##name(&args))
#define OK(name, args) ASSERT_EQ(CALL(name, args), 0)

class PluginTest : public testing::Test {
 protected:
  void SetUp() override {
    client_ = ClientOf(OurEngine());
    ASSERT_NE(client_, nullptr) << "the plugin is not built";
    memory_ = client_->devices()[0]->default_memory()->handle();
  }
  std::unique_ptr<Buffer> Wrap(PJRT_Buffer* buffer) {
    return std::make_unique<Buffer>(client_, OwnedBuffer(client_->plugin(), buffer));
  }
  // A buffer whose value comes from FulfillAliasBuffer.
  std::unique_ptr<Buffer> Promise(PJRT_FulfillAliasBufferCallback** fulfill) {
    auto args = New<PJRT_Client_CreateAliasBuffer_Args>();
    const int64_t dims[] = {4};
    args.client = client_->handle();
    args.memory = memory_;
    args.shape_dims = dims;
    args.shape_num_dims = 1;
    args.shape_element_type = PJRT_Buffer_Type_F32;
    EXPECT_EQ(CALL(Client_CreateAliasBuffer, args), 0);
    *fulfill = args.fulfill_alias_buffer_cb;
    return Wrap(args.alias_buffer);
  }
  void Fulfill(PJRT_FulfillAliasBufferCallback* fulfill, const Buffer* value,
               PJRT_Error_Code code = PJRT_Error_Code_OK, const char* message = "") {
    auto args = New<PJRT_Client_FulfillAliasBuffer_Args>();
    args.client = client_->handle();
    args.buffer = value != nullptr ? value->handle() : nullptr;
    args.status_code = code;
    args.error_message = message;
    args.error_message_size = std::strlen(message);
    args.fulfill_alias_buffer_cb = fulfill;
    EXPECT_EQ(CALL(Client_FulfillAliasBuffer, args), 0);
  }

  std::shared_ptr<Client> client_;
  PJRT_Memory* memory_ = nullptr;
};

}  // namespace pjrt
