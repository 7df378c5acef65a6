// What comes later through the bare C interface: promised values, errors in their place, callbacks.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "plugin_testing.h"

namespace pjrt {
namespace {

TEST_F(PluginTest, ExecutionWaitsForItsArguments) {
  PJRT_FulfillAliasBufferCallback* fulfill = nullptr;
  auto promised = Promise(&fulfill);
  auto executable = client_->Compile(*SumAndProduct());
  const Buffer* first[] = {promised.get(), promised.get()};
  ExecuteResult a = executable->Execute(first);
  const Buffer* second[] = {a.outputs[0].get(), promised.get()};
  ExecuteResult b = executable->Execute(second);
  float host[4] = {};
  Event copied = b.outputs[0]->ToHostAsync(host, sizeof host);
  EXPECT_FALSE(promised->ReadyEvent().IsReady());
  EXPECT_FALSE(a.done.IsReady());
  EXPECT_FALSE(copied.IsReady());
  auto value = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  Fulfill(fulfill, value.get());
  copied.Await();
  EXPECT_EQ(host[3], 12.0f);
  b.done.Await();
}

// An error goes from argument to results to their users, with its code and text.
TEST_F(PluginTest, ErrorsPropagate) {
  PJRT_FulfillAliasBufferCallback* fulfill = nullptr;
  auto promised = Promise(&fulfill);
  auto executable = client_->Compile(*SumAndProduct());
  const Buffer* first[] = {promised.get(), promised.get()};
  ExecuteResult a = executable->Execute(first);
  const Buffer* second[] = {a.outputs[0].get(), a.outputs[1].get()};
  ExecuteResult b = executable->Execute(second);
  auto copy = b.outputs[0]->CopyToDevice(*client_->devices()[1]);
  std::atomic<bool> called = false;
  copy->ReadyEvent().OnReady([&](const hlo::Error* error) {
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->code(), hlo::ErrorCode::kDataLoss);
    called = true;
  });
  Fulfill(fulfill, nullptr, PJRT_Error_Code_DATA_LOSS, "the data are gone");
  float host[4];
  auto expect_lost = [](auto&& f) {
    try {
      f();
      ADD_FAILURE() << "no error";
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kDataLoss);
      EXPECT_STREQ(error.what(), "the data are gone");
    }
  };
  expect_lost([&] { a.done.Await(); });
  expect_lost([&] { b.outputs[1]->Await(); });
  expect_lost([&] { copy->ToHost(host, sizeof host); });
  expect_lost([&] { copy->UnsafePointer(); });
  EXPECT_TRUE(b.done.IsReady());
  EXPECT_TRUE(b.done.error().has_value());
  EXPECT_TRUE(called);
  // The device works on.
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* third[] = {x.get(), x.get()};
  EXPECT_EQ(executable->Execute(third).outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
}

TEST_F(PluginTest, ErrorBufferWithPayload) {
  auto args = New<PJRT_Client_CreateErrorBuffer_Args>();
  PJRT_NamedValue payload = New<PJRT_NamedValue>();
  payload.name = "where";
  payload.name_size = 5;
  payload.type = PJRT_NamedValue_kString;
  payload.string_value = "line 7";
  payload.value_size = 6;
  args.client = client_->handle();
  args.error_code = PJRT_Error_Code_ABORTED;
  args.error_message = "stopped here";
  args.error_message_size = 12;
  args.shape_element_type = PJRT_Buffer_Type_S32;
  args.memory = memory_;
  args.payload = &payload;
  args.num_payload = 1;
  OK(Client_CreateErrorBuffer, args);
  auto buffer = Wrap(args.buffer);
  auto ready = New<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer->handle();
  OK(Buffer_ReadyEvent, ready);
  auto await = New<PJRT_Event_Await_Args>();
  await.event = ready.event;
  PJRT_Error* error = Api()->PJRT_Event_Await(&await);
  ASSERT_NE(error, nullptr);
  const PJRT_Error_FunctionTable* functions = error->vtable;
  EXPECT_EQ(functions->get_code(error), PJRT_Error_Code_ABORTED);
  const char* message;
  size_t size;
  functions->message(error, &message, &size);
  EXPECT_EQ(std::string(message, size), "stopped here");
  std::string seen;
  auto visit = New<PJRT_Error_ForEachPayload_Args>();
  visit.error = error;
  visit.user_arg = &seen;
  visit.visitor = [](const char* key, size_t key_size, const char* value, size_t value_size,
                     void* user_arg) {
    *static_cast<std::string*>(user_arg) +=
        std::string(key, key_size) + "=" + std::string(value, value_size);
  };
  OK(Error_ForEachPayload, visit);
  EXPECT_EQ(seen, "where=line 7");
  functions->destroy(error);
  auto destroy = New<PJRT_Event_Destroy_Args>();
  destroy.event = ready.event;
  OK(Event_Destroy, destroy);
}

TEST_F(PluginTest, EventsOfTheFramework) {
  auto create = New<PJRT_Event_Create_Args>();
  OK(Event_Create, create);
  {
    Event event(client_->plugin(), create.event);
    EXPECT_FALSE(event.IsReady());
    auto early = New<PJRT_Event_Error_Args>();
    early.event = create.event;
    EXPECT_EQ(CALL(Event_Error, early), PJRT_Error_Code_FAILED_PRECONDITION);
    std::thread setter([&] {
      auto set = New<PJRT_Event_Set_Args>();
      set.event = create.event;
      set.error_code = PJRT_Error_Code_CANCELLED;
      set.error_message = "cancelled";
      set.error_message_size = 9;
      EXPECT_EQ(CALL(Event_Set, set), 0);
    });
    EXPECT_THROW(event.Await(), hlo::Error);
    setter.join();
    auto again = New<PJRT_Event_Set_Args>();
    again.event = create.event;
    EXPECT_EQ(CALL(Event_Set, again), PJRT_Error_Code_FAILED_PRECONDITION);
  }
}

// What a callback of the framework's throws is no reason for others not to hear, nor an error of
// who sets the event or who asks.
TEST_F(PluginTest, CallbacksThatThrow) {
  auto create = New<PJRT_Event_Create_Args>();
  OK(Event_Create, create);
  const Event event(client_->plugin(), create.event);
  int called = 0;
  const auto ask = [&] {
    auto args = New<PJRT_Event_OnReady_Args>();
    args.event = create.event;
    args.user_arg = &called;
    args.callback = [](PJRT_Error* error, void* count) {
      CodeOf(error);
      ++*static_cast<int*>(count);
      throw std::bad_alloc();
    };
    return CALL(Event_OnReady, args);
  };
  EXPECT_EQ(ask(), 0);
  EXPECT_EQ(ask(), 0);
  auto set = New<PJRT_Event_Set_Args>();
  set.event = create.event;
  EXPECT_EQ(CALL(Event_Set, set), 0);
  EXPECT_EQ(called, 2);
  EXPECT_EQ(ask(), 0);
  EXPECT_EQ(called, 3);
}

}  // namespace
}  // namespace pjrt
