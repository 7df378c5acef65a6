// Memory through the bare C interface: buffers, transfers, donations, layouts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <latch>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pjrt/client/foreign_functions.h"
#include "plugin_testing.h"

namespace pjrt {
namespace {

TEST_F(PluginTest, BuffersOutliveTheirClientHandle) {
  auto create = New<PJRT_Client_Create_Args>();
  OK(Client_Create, create);
  auto devices = New<PJRT_Client_Devices_Args>();
  devices.client = create.client;
  OK(Client_Devices, devices);
  const float data[] = {1, 2, 3};
  const int64_t dims[] = {3};
  auto upload = New<PJRT_Client_BufferFromHostBuffer_Args>();
  upload.client = create.client;
  upload.data = data;
  upload.type = PJRT_Buffer_Type_F32;
  upload.dims = dims;
  upload.num_dims = 1;
  upload.device = devices.devices[0];
  OK(Client_BufferFromHostBuffer, upload);
  auto event = New<PJRT_Event_Destroy_Args>();
  event.event = upload.done_with_host_buffer;
  OK(Event_Destroy, event);
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = create.client;
  OK(Client_Destroy, destroy);
  auto pointer = New<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = upload.buffer;
  OK(Buffer_UnsafePointer, pointer);
  EXPECT_EQ(reinterpret_cast<const float*>(pointer.buffer_pointer)[2], 3.0f);
  auto drop = New<PJRT_Buffer_Destroy_Args>();
  drop.buffer = upload.buffer;
  OK(Buffer_Destroy, drop);
}

TEST_F(PluginTest, MemoryUserData) {
  const PJRT_Memory_FunctionTable* functions = memory_->vtable;
  ASSERT_NE(functions, nullptr);
  static int destroyed;
  destroyed = 0;
  int key, value;
  EXPECT_EQ(functions->get_user_data(memory_, &key), nullptr);
  functions->set_user_data(memory_, &key, &value, [](void*) { ++destroyed; });
  EXPECT_EQ(functions->get_user_data(memory_, &key), &value);
  functions->set_user_data(memory_, &key, nullptr, nullptr);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(functions->get_user_data(memory_, &key), nullptr);
}

TEST_F(PluginTest, PiecewiseTransfer) {
  const int64_t dims[] = {4};
  PJRT_ShapeSpec specs[2] = {New<PJRT_ShapeSpec>(), New<PJRT_ShapeSpec>()};
  for (PJRT_ShapeSpec& spec : specs) {
    spec.dims = dims;
    spec.num_dims = 1;
    spec.element_type = PJRT_Buffer_Type_F32;
  }
  auto create = New<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client_->handle();
  create.shape_specs = specs;
  create.num_shape_specs = 2;
  create.memory = memory_;
  OK(Client_CreateBuffersForAsyncHostToDevice, create);
  std::unique_ptr<Buffer> buffers[2];
  for (int i = 0; i < 2; ++i) {
    auto retrieve = New<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
    retrieve.transfer_manager = create.transfer_manager;
    retrieve.buffer_index = i;
    OK(AsyncHostToDeviceTransferManager_RetrieveBuffer, retrieve);
    buffers[i] = Wrap(retrieve.buffer_out);
  }
  const float data[] = {1, 2, 3, 4};
  auto transfer = New<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  for (int half = 0; half < 2; ++half) {
    EXPECT_FALSE(buffers[0]->ReadyEvent().IsReady());
    transfer.data = data + 2 * half;
    transfer.offset = 8 * half;
    transfer.transfer_size = 8;
    transfer.is_last_transfer = half == 1;
    OK(AsyncHostToDeviceTransferManager_TransferData, transfer);
    Event(client_->plugin(), transfer.done_with_h2d_transfer).Await();
  }
  EXPECT_EQ(buffers[0]->ToLiteral(), Vector(1, 2, 3, 4));
  transfer.offset = 12;
  EXPECT_EQ(CALL(AsyncHostToDeviceTransferManager_TransferData, transfer),
            PJRT_Error_Code_FAILED_PRECONDITION);
  transfer.buffer_index = 1;
  EXPECT_EQ(CALL(AsyncHostToDeviceTransferManager_TransferData, transfer),
            PJRT_Error_Code_OUT_OF_RANGE);
  auto destroy = New<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  OK(AsyncHostToDeviceTransferManager_Destroy, destroy);
  EXPECT_THROW(buffers[1]->Await(), hlo::Error);
}

TEST_F(PluginTest, WhatIsCalledBackMayUseTheTransferItself) {
  const int64_t dims[] = {4};
  auto spec = New<PJRT_ShapeSpec>();
  spec.dims = dims;
  spec.num_dims = 1;
  spec.element_type = PJRT_Buffer_Type_F32;
  auto create = New<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client_->handle();
  create.shape_specs = &spec;
  create.num_shape_specs = 1;
  create.memory = memory_;
  OK(Client_CreateBuffersForAsyncHostToDevice, create);
  auto retrieve = New<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
  retrieve.transfer_manager = create.transfer_manager;
  OK(AsyncHostToDeviceTransferManager_RetrieveBuffer, retrieve);
  const auto buffer = Wrap(retrieve.buffer_out);
  const float data[] = {1, 2, 3, 4};
  auto transfer = New<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  transfer.data = data;
  transfer.transfer_size = sizeof data;
  transfer.is_last_transfer = true;
  int answer = 0;
  buffer->ReadyEvent().OnReady([&](const hlo::Error*) {
    auto again = transfer;
    answer = CALL(AsyncHostToDeviceTransferManager_TransferData, again);
  });
  alarm(60);
  OK(AsyncHostToDeviceTransferManager_TransferData, transfer);
  alarm(0);
  Event(client_->plugin(), transfer.done_with_h2d_transfer).Await();
  EXPECT_EQ(answer, PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_EQ(buffer->ToLiteral(), Vector(1, 2, 3, 4));
  auto destroy = New<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  OK(AsyncHostToDeviceTransferManager_Destroy, destroy);
}

TEST_F(PluginTest, DonationWithDependency) {
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto args = New<PJRT_Buffer_DonateWithControlDependency_Args>();
  args.buffer = x->handle();
  OK(Buffer_DonateWithControlDependency, args);
  auto y = Wrap(args.out_buffer);
  EXPECT_TRUE(x->IsDeleted());
  EXPECT_FALSE(y->ReadyEvent().IsReady());
  PJRT_Buffer_DonateWithControlDependency_Callback_Args done{};
  done.struct_size = sizeof done;
  done.callback_data = args.callback_data;
  args.dependency_ready_callback(&done);
  EXPECT_EQ(y->ToLiteral(), Vector(1, 2, 3, 4));
}

TEST_F(PluginTest, RawCopyToALaterPlace) {
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto args = New<PJRT_Buffer_CopyRawToHostFuture_Args>();
  args.buffer = x->handle();
  args.offset = 4;
  args.transfer_size = 8;
  OK(Buffer_CopyRawToHostFuture, args);
  Event event(client_->plugin(), args.event);
  EXPECT_FALSE(event.IsReady());
  float two[2] = {};
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args ready{};
  ready.struct_size = sizeof ready;
  ready.callback_data = args.callback_data;
  ready.dst = two;
  args.future_ready_callback(&ready);
  event.Await();
  EXPECT_EQ(two[1], 3.0f);
}

TEST_F(PluginTest, Bitcast) {
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const int64_t dims[] = {2, 2};
  auto args = New<PJRT_Buffer_Bitcast_Args>();
  args.buffer = x->handle();
  args.element_type = PJRT_Buffer_Type_S32;
  args.dims = dims;
  args.num_dims = 2;
  OK(Buffer_Bitcast, args);
  auto y = Wrap(args.out_buffer);
  EXPECT_EQ(y->shape(), hlo::Shape(hlo::ElementType::kS32, {2, 2}));
  EXPECT_EQ(y->ToLiteral().data<int32_t>()[0], 0x3f800000);
  args.num_dims = 1;
  EXPECT_EQ(CALL(Buffer_Bitcast, args), PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(PluginTest, ViewOfDeviceBuffer) {
  alignas(64) static float data[] = {1, 2, 3, 4};
  static int released;
  released = 0;
  const int64_t dims[] = {4};
  for (int offset = 0; offset < 2; ++offset) {
    auto args = New<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
    args.client = client_->handle();
    args.device_buffer_ptr = data + offset;
    args.dims = dims;
    args.num_dims = 1;
    args.element_type = PJRT_Buffer_Type_U8;
    args.memory = memory_;
    args.on_delete_callback = [](void*, void*) { ++released; };
    OK(Client_CreateViewOfDeviceBuffer, args);
    auto view = Wrap(args.buffer);
    EXPECT_EQ(view->ToLiteral().AsInt(3), offset == 0 ? 0x3f : 0x40);
    EXPECT_EQ(released, offset == 0 ? 0 : 2);  // what is not aligned is copied at once
  }
  EXPECT_EQ(released, 2);
}

TEST_F(PluginTest, ZeroCopy) {
  alignas(64) static float data[4096];
  HostBufferOptions options;
  options.semantics = HostBufferSemantics::kImmutableZeroCopy;
  std::atomic<bool> done = false;
  options.done = [&] { done = true; };
  auto buffer = client_->BufferFromHost(data, hlo::Shape(hlo::ElementType::kF32, {4096}),
                                        *client_->devices()[0], options);
  EXPECT_EQ(reinterpret_cast<const float*>(buffer->UnsafePointer()), data);
  EXPECT_FALSE(done);
  // Donated, it must not be written: it is the host's.
  auto module = MakeModule("add_one", [](hlo::Builder& b) {
    const hlo::Shape shape(hlo::ElementType::kF32, {4096});
    return std::vector<hlo::Value>{b.Add(b.Parameter(shape), b.Full(shape, 1.0))};
  });
  module->input_output_aliases.push_back({.output = 0, .parameter = 0});
  auto executable = client_->Compile(*module);
  const Buffer* arguments[] = {buffer.get()};
  ExecuteResult result = executable->Execute(arguments);
  result.done.Await();
  EXPECT_TRUE(buffer->IsDeleted());
  EXPECT_EQ(data[0], 0.0f);
  EXPECT_EQ(result.outputs[0]->ToLiteral().AsDouble(4095), 1.0);
  EXPECT_TRUE(done);
  // Its result is the device's, and is updated in place.
  const auto address = result.outputs[0]->UnsafePointer();
  const Buffer* again[] = {result.outputs[0].get()};
  ExecuteResult second = executable->Execute(again);
  EXPECT_EQ(second.outputs[0]->ToLiteral().AsDouble(0), 2.0);
  EXPECT_EQ(second.outputs[0]->UnsafePointer(), address);
}

std::latch handler_begun(1), handler_may_end(1);

// An XLA_FFI_Handler.
void* WaitingHandler(void*) {
  handler_begun.count_down();
  handler_may_end.wait();
  return nullptr;
}

// Whoever asks for an address may hold what a program is waiting for.
TEST_F(PluginTest, AddressesBeforeTheValues) {
  const hlo::Shape shape(hlo::ElementType::kF32, {4});
  auto function = reinterpret_cast<void*>(&WaitingHandler);
  RegisterForeignFunction(client_->plugin(), "test.waiting", function, "cpu");
  auto waiting = client_->Compile(*MakeModule("waiting", [&](hlo::Builder& b) {
    return std::vector<hlo::Value>{b.CustomCall(
        {b.Parameter(shape)}, shape,
        {.target = "test.waiting", .api_version = 4, .output_operand_aliases = {{{}, 0, {}}}})};
  }));
  auto module = MakeModule("add_one", [&](hlo::Builder& b) {
    return std::vector<hlo::Value>{b.Add(b.Parameter(shape), b.Full(shape, 1.0))};
  });
  module->input_output_aliases.push_back({.output = 0, .parameter = 0});
  auto add_one = client_->Compile(*module);
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto donated = client_->BufferFromLiteral(Vector(5, 6, 7, 8), *client_->devices()[0]);
  const auto place = donated->UnsafePointer();

  const Buffer* argument[] = {x.get()};
  ExecuteResult first = waiting->Execute(argument);
  handler_begun.wait();
  const Buffer* result[] = {first.outputs[0].get()};
  ExecuteResult second = add_one->Execute(result);  // of what is not there yet, and donated
  const Buffer* other[] = {donated.get()};
  ExecuteResult third = add_one->Execute(other);
  const auto second_place = second.outputs[0]->UnsafePointer();
  const auto third_place = third.outputs[0]->UnsafePointer();
  EXPECT_FALSE(first.done.IsReady());
  EXPECT_EQ(third_place, place);  // in place all the same
  handler_may_end.count_down();
  EXPECT_EQ(second.outputs[0]->ToLiteral(), Vector(2, 3, 4, 5));
  EXPECT_EQ(third.outputs[0]->ToLiteral(), Vector(6, 7, 8, 9));
  EXPECT_EQ(second.outputs[0]->UnsafePointer(), second_place);
  EXPECT_EQ(third.outputs[0]->UnsafePointer(), third_place);
}

// A program that takes longer than a thread takes to wake up runs on the caller's thread where the
// caller waits for it anyway.
TEST_F(PluginTest, WhoWaitsRunsAQuickProgram) {
  const hlo::Shape shape(hlo::ElementType::kF32, {1 << 18});
  auto executable = client_->Compile(*MakeModule("exponential", [&](hlo::Builder& b) {
    return std::vector<hlo::Value>{b.Exp(b.Parameter(shape))};
  }));
  auto x = client_->BufferFromLiteral(hlo::Literal(shape), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get()};
  executable->Execute(arguments).done.Await();  // how long it takes is known now
  ExecuteOptions options;
  options.caller_waits = true;
  int ready = 0;
  for (int i = 0; i < 100; ++i) {
    ExecuteResult result = executable->Execute(arguments, options);
    ready += result.done.IsReady();
    EXPECT_EQ(result.outputs[0]->ToLiteral().AsDouble(17), 1.0);
  }
  EXPECT_GT(ready, 20);  // not all: where others hold the processors, it is not always quick
}

// A caller that lends memory for results.
struct Lender {
  alignas(64) float memory[2][16] = {};
  int lent = 0, released = 0;
  bool refuses = false;
  std::map<size_t, const void*> places;
  PJRT_ResultMemory_Extension extension{};

  Lender() {
    extension.base = {sizeof extension, PJRT_Extension_Type_ResultMemory, nullptr};
    extension.memory = extension.execution = this;
    extension.allocate = [](void* self, size_t bytes) -> void* {
      auto& lender = *static_cast<Lender*>(self);
      EXPECT_EQ(bytes, 16U);
      return lender.refuses ? nullptr : lender.memory[lender.lent++];
    };
    extension.release = [](void* self, void* data, size_t bytes) {
      EXPECT_EQ(bytes, 16U);
      ++static_cast<Lender*>(self)->released;
    };
    extension.placed = [](void* self, size_t device, size_t result, const void* data) {
      EXPECT_EQ(device, 0U);
      static_cast<Lender*>(self)->places[result] = data;
    };
  }
};

TEST_F(PluginTest, ResultsLieInLentMemory) {
  const Device& device = *client_->devices()[0];
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  for (bool refuses : {false, true}) {
    Lender lender;
    lender.refuses = refuses;
    ExecuteOptions options;
    options.result_memory = &lender.extension;
    const int64_t keep[] = {0};
    options.non_donatable_inputs = keep;
    auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), device);
    const Buffer* arguments[] = {x.get(), x.get()};
    ExecuteResult first = executable->Execute(arguments, options);
    first.done.Await();
    EXPECT_EQ(lender.lent, refuses ? 0 : 2);
    const int64_t with = device.memory_stats().bytes_in_use;  // lent memory counts, too
    for (size_t i = 0; i < 2; ++i) {
      const auto* data = reinterpret_cast<float*>(first.outputs[i]->UnsafePointer());
      EXPECT_EQ(lender.places[i], data);
      EXPECT_EQ(data == lender.memory[i], !refuses);
    }
    EXPECT_EQ(first.outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
    // It may be written in place, and is given back when nothing uses it.
    const Buffer* sum[] = {first.outputs[0].get(), x.get()};
    ExecuteResult second = executable->Execute(sum);
    EXPECT_EQ(second.outputs[0]->ToLiteral(), Vector(3, 6, 9, 12));
    EXPECT_EQ(second.outputs[0]->UnsafePointer(), reinterpret_cast<uintptr_t>(lender.places[0]));
    EXPECT_EQ(lender.released, 0);
    first.outputs.clear();
    second.outputs.clear();
    EXPECT_EQ(lender.released, lender.lent);
    EXPECT_LE(device.memory_stats().bytes_in_use, with - 32);
  }
}

TEST_F(PluginTest, DonationLeavesExternalReferencesAlone) {
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto y = client_->BufferFromLiteral(Vector(1, 1, 1, 1), *client_->devices()[0]);
  Buffer::ExternalReference reference(*x);
  const Buffer* arguments[] = {x.get(), y.get()};
  EXPECT_EQ(executable->Execute(arguments).outputs[0]->ToLiteral(), Vector(2, 3, 4, 5));
  EXPECT_TRUE(x->IsDeleted());
  EXPECT_EQ(static_cast<const float*>(reference.data())[0], 1.0f);
}

TEST_F(PluginTest, MustAliasCannotBeKept) {
  auto module = SumAndProduct(/*donate=*/true);
  module->input_output_aliases[0].must_alias = true;
  auto executable = client_->Compile(*module);
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto y = client_->BufferFromLiteral(Vector(1, 1, 1, 1), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), y.get()};
  const int64_t keep[] = {0};
  ExecuteOptions options;
  options.non_donatable_inputs = keep;
  auto run = [&] { executable->Execute(arguments, options).done.Await(); };
  // MLIR's tf.aliasing_output does not tell may from must; where it does, this is an error.
  try {
    run();
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(x->IsDeleted());
}

// The statistics are the device's: threads of the engine may still make and free small buffers of
// earlier tests. So a large one is looked for, give or take half of it.
TEST_F(PluginTest, MemoryStatistics) {
  const Device& device = *client_->devices()[0];
  auto buffer =
      client_->CreateUninitializedBuffer(hlo::Shape(hlo::ElementType::kF32, {1 << 20}), device);
  const MemoryStats with = device.memory_stats();
  EXPECT_GE(with.bytes_in_use, 4 << 20);
  EXPECT_GE(with.peak_bytes_in_use.value(), with.bytes_in_use);
  buffer = nullptr;
  EXPECT_LE(device.memory_stats().bytes_in_use, with.bytes_in_use - (2 << 20));
}

TEST_F(PluginTest, ImpossibleSizes) {
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  auto args = New<PJRT_Client_CreateUninitializedBuffer_Args>();
  args.client = client_->handle();
  args.shape_dims = huge;
  args.shape_num_dims = 2;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.memory = memory_;
  EXPECT_EQ(CALL(Client_CreateUninitializedBuffer, args), PJRT_Error_Code_RESOURCE_EXHAUSTED);
  args.shape_num_dims = 1;
  EXPECT_EQ(CALL(Client_CreateUninitializedBuffer, args), PJRT_Error_Code_RESOURCE_EXHAUSTED);
  const int64_t negative[] = {-1};
  args.shape_dims = negative;
  EXPECT_EQ(CALL(Client_CreateUninitializedBuffer, args), PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(PluginTest, Layouts) {
  const auto* layouts =
      client_->plugin().extension<PJRT_Layouts_Extension>(PJRT_Extension_Type_Layouts);
  ASSERT_NE(layouts, nullptr);
  auto x = client_->BufferFromLiteral(hlo::Literal(hlo::Shape(hlo::ElementType::kF32, {2, 3, 4})),
                                      *client_->devices()[0]);
  auto args = New<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>();
  args.buffer = x->handle();
  ASSERT_EQ(CodeOf(layouts->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&args)), 0);
  auto text = New<PJRT_Layouts_MemoryLayout_Serialize_Args>();
  text.layout = args.layout;
  ASSERT_EQ(CodeOf(layouts->PJRT_Layouts_MemoryLayout_Serialize(&text)), 0);
  EXPECT_EQ(std::string(text.serialized_bytes, text.serialized_bytes_size), "{2,1,0}");
  text.serialized_layout_deleter(text.serialized_layout);
  auto destroy = New<PJRT_Layouts_MemoryLayout_Destroy_Args>();
  destroy.layout = args.layout;
  EXPECT_EQ(CodeOf(layouts->PJRT_Layouts_MemoryLayout_Destroy(&destroy)), 0);
}

TEST_F(PluginTest, HostLayouts) {
  auto x = client_->BufferFromLiteral(
      hlo::Literal::FromVector<int32_t>({0, 1, 2, 10, 11, 12}, {2, 3}), *client_->devices()[0]);
  const int64_t column_major[] = {0, 1};
  auto layout = New<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled = New<PJRT_Buffer_MemoryLayout_Tiled>();
  layout.tiled.minor_to_major = column_major;
  layout.tiled.minor_to_major_size = 2;
  int32_t columns[6] = {};
  auto args = New<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = x->handle();
  args.host_layout = &layout;
  OK(Buffer_ToHostBuffer, args);  // asks for the size
  EXPECT_EQ(args.dst_size, 24u);
  args.dst = columns;
  OK(Buffer_ToHostBuffer, args);
  Event(client_->plugin(), args.event).Await();
  EXPECT_EQ(std::vector<int32_t>(columns, columns + 6),
            (std::vector<int32_t>{0, 10, 1, 11, 2, 12}));
  args.dst_size = 23;
  EXPECT_EQ(CALL(Buffer_ToHostBuffer, args), PJRT_Error_Code_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace pjrt
