#include "lazy/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/op.h"

namespace lazy {
namespace {

hlo::Value Opposite(hlo::Builder& b, hlo::Value x) { return b.Negate(x); }

Value Leaf() {
  SharedShape shape = InternShape(hlo::Shape(hlo::ElementType::kF32, {2}));
  Reference<Data> data(new Data(nullptr, shape.get(), nullptr));
  return {Node::MakeData(std::move(data), shape.get()), 0};
}

Value Recorded(const Value& x) {
  OperandList operands;
  operands.Add(x);
  return {Op<&Opposite>::Record(operands, {}), 0};
}

bool IsPending(const Reference<Storage>& storage) {
  return storage->value().node->role() == Node::Role::kOperation;
}

class StorageTest : public testing::Test {
 protected:
  bool IsInList(const Reference<Storage>& storage) {
    const auto pending = PendingStorages(&device_);
    return std::find(pending.begin(), pending.end(), storage) != pending.end();
  }
  Device device_{nullptr, nullptr, 0};
};

TEST_F(StorageTest, IsInTheListWhileItsValueIsRecordedWork) {
  auto storage = Storage::Make(&device_, Leaf());
  EXPECT_FALSE(IsInList(storage));
  const Value work = Recorded(storage->value());
  storage->set_value(work);
  EXPECT_TRUE(IsInList(storage));
  storage->Materialize(Leaf(), Leaf());  // of an older value
  EXPECT_TRUE(IsInList(storage));
  storage->Materialize(work, Leaf());
  EXPECT_FALSE(IsInList(storage));
  storage->set_value(work);
  storage->set_value(Leaf());
  EXPECT_FALSE(IsInList(storage));
}

TEST_F(StorageTest, WhatIsPendingComesWithTheDataThatItReplaces) {
  const Value leaf = Leaf();
  auto storage = Storage::Make(&device_, leaf);
  EXPECT_FALSE(storage->TakePending().value);
  const Value work = Recorded(leaf);
  storage->set_value(work);
  EXPECT_EQ(storage->TakePending().value, work);
  EXPECT_EQ(storage->TakePending().replaced_data, leaf.node->data()->id());
}

// A sync gives the storage its result, and before it has taken the storage off the list another
// thread records new work on it.
TEST_F(StorageTest, StaysInTheListWhenWorkIsRecordedWhileASyncEnds) {
  for (int i = 0; i < 200; ++i) {
    const Value work = Recorded(Leaf()), result = Leaf();
    auto storage = Storage::Make(&device_, work);
    device_.pending_mutex.lock();
    std::thread sync([&] { storage->Materialize(work, result); });
    while (IsPending(storage)) std::this_thread::yield();
    device_.pending_mutex.unlock();
    storage->set_value(Recorded(result));  // most of the time before the other thread has woken up
    sync.join();
    ASSERT_TRUE(IsInList(storage)) << "round " << i;
  }
}

}  // namespace
}  // namespace lazy
