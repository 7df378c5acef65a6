#include "process/small_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "process/sanitizers.h"

namespace process {
namespace {

// Of all threads, which have one heap then.
void ShareHeap() { mallopt(M_ARENA_MAX, 1); }
int64_t BytesInUse() { return static_cast<int64_t>(mallinfo2().uordblks); }

TEST(SmallMemory, WhatWasFreedLastIsMadeNext) {
  if (kKeepsFreedMemory) GTEST_SKIP() << "sanitizers see each piece once";
  void* first = AllocateSmall(100);
  void* second = AllocateSmall(100);
  FreeSmall(first, 100);
  FreeSmall(second, 100);
  void* other_size = AllocateSmall(200);
  EXPECT_NE(other_size, second);
  EXPECT_EQ(AllocateSmall(97), second);
  EXPECT_EQ(AllocateSmall(128), first);
  FreeSmall(first, 128);
  FreeSmall(second, 97);
  FreeSmall(other_size, 200);
}

TEST(SmallMemory, PiecesDoNotOverlap) {
  std::vector<std::pair<unsigned char*, size_t>> pieces;
  for (int round = 0; round < 3; ++round) {
    for (size_t bytes = 0; bytes < 700; ++bytes) {
      auto* piece = static_cast<unsigned char*>(AllocateSmall(bytes));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % __STDCPP_DEFAULT_NEW_ALIGNMENT__, 0u);
      std::memset(piece, static_cast<int>(bytes % 251), bytes);
      pieces.emplace_back(piece, bytes);
    }
    for (const auto& [piece, bytes] : pieces) {
      for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(piece[i], bytes % 251);
      FreeSmall(piece, bytes);
    }
    pieces.clear();
  }
}

TEST(SmallMemory, KeepsLittle) {
  if (kKeepsFreedMemory) GTEST_SKIP() << "the sanitizer's memory is not counted so";
  ShareHeap();
  const int64_t before = BytesInUse();
  std::vector<void*> pieces(100'000);
  for (void*& piece : pieces) piece = AllocateSmall(128);
  EXPECT_GT(BytesInUse() - before, 12'000'000);
  for (void* piece : pieces) FreeSmall(piece, 128);
  EXPECT_LT(BytesInUse() - before - static_cast<int64_t>(pieces.size() * sizeof(void*)), 200'000);
}

// What a thread keeps is given back at its end, and what is freed after that is not kept.
TEST(SmallMemory, ThreadsLeaveNothing) {
  if (kKeepsFreedMemory) GTEST_SKIP() << "the sanitizer's memory is not counted so";
  struct FreesLate {
    void* piece = nullptr;
    ~FreesLate() { FreeSmall(piece, 300); }
  };
  const auto run = [] {
    thread_local FreesLate late;  // made before the thread keeps anything, so destroyed after
    late.piece = AllocateSmall(300);
    std::vector<void*> pieces(300);
    for (void*& piece : pieces) piece = AllocateSmall(300);
    for (void* piece : pieces) FreeSmall(piece, 300);
  };
  ShareHeap();
  std::thread(run).join();
  const int64_t before = BytesInUse();
  for (int i = 0; i < 100; ++i) std::thread(run).join();
  EXPECT_LT(BytesInUse() - before, 20'000);
}

TEST(SmallMemory, AnotherThreadMayFree) {
  struct Object : SmallObject {
    int number = 7;
  };
  std::vector<std::unique_ptr<Object>> objects;
  for (int i = 0; i < 1000; ++i) objects.push_back(std::make_unique<Object>());
  std::thread([&] { objects.clear(); }).join();
  const auto shared = std::allocate_shared<int>(SmallAllocator<int>(), 3);
  EXPECT_EQ(*shared, 3);
}

}  // namespace
}  // namespace process
