#include "cpu/jit.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>

#include <algorithm>
#include <new>
#include <vector>

#include "cpu/code_memory.h"
#include "cpu/emit/vector_math.h"
#include "cpu/host.h"
#include "cpu/isa.h"
#include "cpu/llvm_object.h"
#include "hlo/error.h"
#include "hlo/size_arithmetic.h"

namespace cpu {
namespace {

// By default LLVM ends the process.
[[noreturn]] void ThrowBadAlloc(void*, const char*, bool) { throw std::bad_alloc(); }
[[noreturn]] void ThrowFatalError(void*, const char* reason, bool) {
  throw hlo::Error(hlo::ErrorCode::kInternal, std::string("LLVM: ") + reason);
}

void InitializeLlvm() {
  static const bool initialized = [] {
    llvm::install_bad_alloc_error_handler(&ThrowBadAlloc);
    llvm::install_fatal_error_handler(&ThrowFatalError);
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
}

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine() {
  InitializeLlvm();
  std::string error;
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) throw hlo::Error(hlo::ErrorCode::kInternal, "LLVM has no target for " + triple);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, Host().name, Host().features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default, /*JIT=*/true));
}

// A machine with the passes that make objects for it. To set them up takes as long as they take for
// a small loop, so they are kept: LLVM's own tests run one pass manager over several modules, too.
class Compiler {
 public:
  Compiler()
      : stream_(buffer_),
        machine_(MakeTargetMachine().release()),
        passes_(new llvm::legacy::PassManager) {
    passes_->add(llvm::createTargetTransformInfoWrapperPass(machine_->getTargetIRAnalysis()));
    passes_->add(llvm::createEarlyCSEPass());
    passes_->add(llvm::createInstructionCombiningPass());
    passes_->add(llvm::createEarlyCSEPass());
    if (machine_->addPassesToEmitFile(*passes_, stream_, nullptr, llvm::CodeGenFileType::ObjectFile,
                                      /*DisableVerify=*/true)) {
      throw hlo::Error(hlo::ErrorCode::kInternal, "LLVM cannot write object files for this CPU");
    }
  }
  ~Compiler() {
    delete passes_;
    delete machine_;
  }
  Compiler(const Compiler&) = delete;

  const llvm::TargetMachine& machine() const { return *machine_; }
  std::string Emit(llvm::Module& module) {
    buffer_.clear();
    passes_->run(module);
    return std::string(buffer_.data(), buffer_.size());
  }

 private:
  llvm::SmallVector<char, 0> buffer_;
  llvm::raw_svector_ostream stream_;
  // Abandoned if the constructor throws (llvm_object.h).
  llvm::TargetMachine* const machine_;
  llvm::legacy::PassManager* const passes_;
};

// After an exception the compiler is abandoned, and the next module has another.
thread_local std::unique_ptr<Compiler> thread_compiler;

Compiler& ThreadCompiler() {
  if (thread_compiler == nullptr) thread_compiler = std::make_unique<Compiler>();
  return *thread_compiler;
}

// Each object's sections in one block, all of which becomes executable: generated code writes to
// none of them.
class Memory : public llvm::RTDyldMemoryManager {
 public:
  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align code_alignment, uintptr_t constants,
                              llvm::Align constants_alignment, uintptr_t data,
                              llvm::Align data_alignment) override {
    // As large as whoever wrote the object says: a sum that overflows is too much, too.
    size_t bytes = 0;
    bool overflows = false;
    for (const size_t part : {code, code_alignment.value(), constants, constants_alignment.value(),
                              data, data_alignment.value()}) {
      overflows |= __builtin_add_overflow(bytes, part, &bytes);
    }
    try {
      if (overflows) throw std::bad_alloc();
      blocks_.emplace_back(bytes);
      used_ = 0;
    } catch (const std::bad_alloc&) {
      lacks_memory = true;  // and LLVM will give up when it gets no section
    }
  }
  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned id,
                               llvm::StringRef name) override {
    return Allocate(size, alignment);
  }
  uint8_t* allocateDataSection(uintptr_t size, unsigned alignment, unsigned id,
                               llvm::StringRef name, bool is_read_only) override {
    return Allocate(size, alignment);
  }
  // True if it failed.
  bool finalizeMemory(std::string* message) override {
    for (CodeBlock& block : blocks_) {
      if (block.MakeExecutable()) continue;
      *message = "the system has no more memory or mappings";
      return true;
    }
    return false;
  }
  uint64_t getSymbolAddress(const std::string& name) override {
    return reinterpret_cast<uint64_t>(LibraryFunctionAddress(name));
  }
  // Generated code neither throws nor is unwound.
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}

  // Of all blocks.
  int64_t bytes() const {
    int64_t sum = 0;
    for (const CodeBlock& block : blocks_) sum += static_cast<int64_t>(block.bytes());
    return sum;
  }

  bool lacks_memory = false;

 private:
  // In the last block. Null if it is full: LLVM has asked for less than it takes.
  uint8_t* Allocate(uintptr_t size, unsigned alignment) {
    if (lacks_memory || blocks_.empty()) return nullptr;
    const size_t begin = hlo::RoundUp(used_, size_t{std::max(alignment, 1u)});
    const size_t capacity = blocks_.back().bytes();
    if (begin > capacity || size > capacity - begin) return nullptr;
    used_ = begin + size;
    return blocks_.back().data() + begin;
  }

  std::vector<CodeBlock> blocks_;
  size_t used_ = 0;  // of the last one
};

}  // namespace

namespace {

// The least that a feature of LLVM's belongs to.
Isa Needs(llvm::StringRef feature) {
  if (feature.starts_with("amx") || feature.starts_with("avx10")) return Isa::kAll;
  if (feature.starts_with("avx512")) {
    for (const char* base : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) {
      if (feature == base) return Isa::kAvx512;
    }
    return Isa::kAll;
  }
  if (feature.starts_with("avxvnni") || feature.starts_with("avxifma")) return Isa::kAll;
  for (const char* vector : {"avx", "avx2", "fma", "fma4", "f16c", "xop", "vaes", "vpclmulqdq"}) {
    if (feature == vector) return Isa::kAvx2;
  }
  return Isa::kBaseline;
}

}  // namespace

const HostCpu& Host() {
  static const HostCpu host = [] {
    HostCpu result;
    result.name = llvm::sys::getHostCPUName().str();
    auto features = llvm::sys::getHostCPUFeatures();
    for (auto& feature : features) {
      if (Needs(feature.getKey()) > IsaCap()) feature.getValue() = false;
    }
    for (const auto& feature : features) {
      if (!result.features.empty()) result.features += ',';
      result.features += (feature.getValue() ? "+" : "-") + feature.getKey().str();
    }
    auto has = [&](const char* name) { return features.lookup(name); };
    result.has_masks = has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
    result.vector_bytes = result.has_masks ? 64 : has("avx2") && has("fma") ? 32 : 16;
    return result;
  }();
  return host;
}

void PrepareModule(llvm::Module& module) {
  // Known once and for ever: a thread that finds all its kernels there makes no compiler.
  struct Target {
    std::string triple;
    llvm::DataLayout layout;
  };
  static const auto* target = [] {
    const llvm::TargetMachine& machine = ThreadCompiler().machine();
    return new Target{machine.getTargetTriple().str(), machine.createDataLayout()};
  }();
  module.setTargetTriple(target->triple);
  module.setDataLayout(target->layout);
}

namespace {

void Verify(const llvm::Module& module) {
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (!llvm::verifyModule(module, &stream)) return;
  throw hlo::Error(hlo::ErrorCode::kInternal, "generated code is malformed: " + message);
}

}  // namespace

std::string EmitObject(llvm::Module& module) {
  Verify(module);
  Compiler& compiler = ThreadCompiler();
  try {
    return compiler.Emit(module);
  } catch (...) {
    (void)thread_compiler.release();
    throw;
  }
}

std::string Bitcode(const llvm::Module& module) {
  llvm::SmallVector<char, 0> buffer;
  const LlvmObject<llvm::BitcodeWriter> writer(buffer);
  writer->writeModule(module);
  writer->writeStrtab();  // the names of what it calls
  return std::string(buffer.data(), buffer.size());
}

struct LoadedCode::State {
  Memory memory;
  std::unique_ptr<llvm::RuntimeDyld> linker;
};

LoadedCode::LoadedCode(const std::vector<std::string>& objects)
    : state_(std::make_unique<State>()) {
  try {
    Load(objects);
  } catch (const hlo::Error& error) {
    const bool lacks_memory = state_->memory.lacks_memory;
    if (error.code() == hlo::ErrorCode::kInternal) (void)state_.release();  // LLVM's: abandoned
    if (!lacks_memory) throw;
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "no memory, or no memory mapping, is left for compiled code");
  } catch (...) {
    (void)state_.release();
    throw;
  }
}

void LoadedCode::Load(const std::vector<std::string>& objects) {
  state_->linker = std::make_unique<llvm::RuntimeDyld>(state_->memory, state_->memory);
  for (const std::string& bytes : objects) {
    auto object = llvm::object::ObjectFile::createObjectFile(
        llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), "kernels"));
    if (!object) {
      llvm::consumeError(object.takeError());
      throw hlo::Error("the executable holds code that is not an object file");
    }
    state_->linker->loadObject(**object);
  }
  if (objects.empty()) return;
  state_->linker->resolveRelocations();
  if (state_->linker->hasError()) {
    throw hlo::Error("cannot load compiled code: " + state_->linker->getErrorString().str());
  }
  std::string message;
  if (state_->memory.finalizeMemory(&message)) {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted, "cannot make code executable: " + message);
  }
}

LoadedCode::~LoadedCode() = default;

void* LoadedCode::Find(std::string_view symbol) const {
  if (state_->memory.bytes() == 0) return nullptr;
  return reinterpret_cast<void*>(
      state_->linker->getSymbol(llvm::StringRef(symbol.data(), symbol.size())).getAddress());
}

int64_t LoadedCode::bytes() const { return state_->memory.bytes(); }

}  // namespace cpu
