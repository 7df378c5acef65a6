// Pages for machine code: few mappings, and nothing left of what was there before.
#include "cpu/code_memory.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "cpu/code_generation.h"
#include "cpu/dump.h"
#include "cpu/kernel_cache.h"
#include "cpu/pipeline.h"
#include "hlo/builder.h"
#include "hlo/error.h"
#include "process/sanitizers.h"

#if PROCESS_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace cpu {
namespace {

// What LLVM was changing when it gave up is abandoned (llvm_object.h), and meant to be.
struct Abandons {
#if PROCESS_ADDRESS_SANITIZER
  const __lsan::ScopedDisabler disabler;
#endif
  ~Abandons() {}
};

int64_t Mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

CodeBlock Filled(size_t bytes, uint8_t value) {
  CodeBlock block(bytes);
  std::fill_n(block.data(), block.bytes(), value);
  EXPECT_TRUE(block.MakeExecutable());
  return block;
}

TEST(CodeMemory, ManyBlocksAreFewMappings) {
  const int64_t before = Mappings();
  std::vector<CodeBlock> blocks;
  for (int i = 0; i < 3000; ++i) blocks.push_back(Filled(1 + i % 9000, 1));
  EXPECT_LT(Mappings() - before, 100);
  // Every third goes, and its place is taken again.
  for (size_t i = 0; i < blocks.size(); i += 3) blocks[i] = CodeBlock();
  for (size_t i = 0; i < blocks.size(); i += 3) blocks[i] = Filled(4096, 2);
  EXPECT_LT(Mappings() - before, 200);
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(*blocks[i].data(), i % 3 == 0 ? 2 : 1);
}

TEST(CodeMemory, IsZeroAndGivenBack) {
  const size_t slabs = CodeSlabs();
  for (int turn = 0; turn < 3; ++turn) {
    CodeBlock keeper(100);
    const CodeBlock large = Filled(5 << 20, 7);
    Filled(10'000, 7);
    const CodeBlock again(10'000);
    EXPECT_EQ(std::count(again.data(), again.data() + again.bytes(), 0), 12'288);
    EXPECT_LE(CodeSlabs(), slabs + 2);
  }
  EXPECT_EQ(CodeSlabs(), slabs);
}

TEST(CodeMemory, ThatThereIsNotIsABadAlloc) {
  const size_t slabs = CodeSlabs();
  EXPECT_THROW(CodeBlock(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(CodeSlabs(), slabs);
}

// A program of one kernel.
GeneratedCode CodeOf(int64_t size, KernelCache& cache) {
  hlo::Module module;
  hlo::Computation* entry = module.AddComputation("main");
  module.set_entry(entry);
  hlo::Builder b(entry);
  const hlo::Value x = b.Parameter(hlo::Shape(hlo::ElementType::kF32, {size, 7}));
  entry->set_results({b.Add(x, b.Multiply(x, x))});
  RunPipeline(module, {});
  return GenerateCode(module, Dump(), cache, SlotsFor::kNothing);
}

// Whoever wrote an object says how large its sections are.
TEST(CodeMemory, SectionsThatClaimAnySize) {
  KernelCache cache(1 << 20);
  const std::string object(CodeOf(100, cache).Objects()[0]);
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  int refused = 0;
  for (int i = 0; i < header.e_shnum; ++i) {
    const size_t place = header.e_shoff + i * sizeof(Elf64_Shdr);
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + place, sizeof section);
    if ((section.sh_flags & SHF_ALLOC) == 0) continue;
    section.sh_type = SHT_NOBITS;
    for (const uint64_t size :
         {uint64_t{1} << 40, uint64_t{1} << 63, ~uint64_t{100}, ~uint64_t{0}}) {
      section.sh_size = size;
      std::string changed = object;
      std::memcpy(changed.data() + place, &section, sizeof section);
      const Abandons scope;
      EXPECT_THROW(LoadedCode({changed}), hlo::Error) << i << " " << size;
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(CodeMemory, KernelsAreFewMappings) {
  KernelCache cache(256 << 20);
  const int64_t before = Mappings();
  std::vector<GeneratedCode> programs;
  for (int64_t size = 100; size < 300; ++size) programs.push_back(CodeOf(size, cache));
  EXPECT_EQ(cache.statistics().compiled, 200);
  EXPECT_LT(Mappings() - before, 60);
}

}  // namespace
}  // namespace cpu
