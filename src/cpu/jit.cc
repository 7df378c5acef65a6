#include "cpu/jit.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Scalar/GVN.h>

#include <new>

#include "cpu/emit/vector_math.h"
#include "cpu/host.h"
#include "cpu/llvm_object.h"
#include "hlo/error.h"

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

// After an exception the machine is abandoned, and the next module has another.
thread_local std::unique_ptr<llvm::TargetMachine> thread_machine;

llvm::TargetMachine& ThreadTargetMachine() {
  if (thread_machine == nullptr) thread_machine = MakeTargetMachine();
  return *thread_machine;
}

class Memory : public llvm::SectionMemoryManager {
 public:
  uint8_t* allocateCodeSection(uintptr_t size, unsigned alignment, unsigned id,
                               llvm::StringRef name) override {
    bytes += static_cast<int64_t>(size);
    return SectionMemoryManager::allocateCodeSection(size, alignment, id, name);
  }
  uint64_t getSymbolAddress(const std::string& name) override {
    return reinterpret_cast<uint64_t>(LibraryFunctionAddress(name));
  }
  // Generated code neither throws nor is unwound.
  void registerEHFrames(uint8_t*, uint64_t, size_t) override {}
  void deregisterEHFrames() override {}
  int64_t bytes = 0;
};

}  // namespace

const HostCpu& Host() {
  static const HostCpu host = [] {
    HostCpu result;
    result.name = llvm::sys::getHostCPUName().str();
    const auto features = llvm::sys::getHostCPUFeatures();
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
  llvm::TargetMachine& machine = ThreadTargetMachine();
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
}

namespace {

std::string Emit(llvm::TargetMachine& machine, llvm::Module& module) {
  std::string message;
  llvm::raw_string_ostream message_stream(message);
  if (llvm::verifyModule(module, &message_stream)) {
    throw hlo::Error(hlo::ErrorCode::kInternal, "generated code is malformed: " + message);
  }
  const LlvmObject<llvm::legacy::FunctionPassManager> functions(&module);
  functions->add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  functions->add(llvm::createEarlyCSEPass());
  functions->add(llvm::createInstructionCombiningPass());
  functions->add(llvm::createEarlyCSEPass());
  functions->doInitialization();
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) functions->run(function);
  }
  functions->doFinalization();
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  const LlvmObject<llvm::legacy::PassManager> passes;
  if (machine.addPassesToEmitFile(*passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile,
                                  /*DisableVerify=*/true)) {
    throw hlo::Error(hlo::ErrorCode::kInternal, "LLVM cannot write object files for this CPU");
  }
  passes->run(module);
  return std::string(buffer.data(), buffer.size());
}

}  // namespace

std::string EmitObject(llvm::Module& module) {
  llvm::TargetMachine& machine = ThreadTargetMachine();
  try {
    return Emit(machine, module);
  } catch (...) {
    (void)thread_machine.release();
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
    if (error.code() == hlo::ErrorCode::kInternal) (void)state_.release();  // LLVM's: abandoned
    throw;
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
  if (state_->memory.bytes == 0) return nullptr;
  return reinterpret_cast<void*>(
      state_->linker->getSymbol(llvm::StringRef(symbol.data(), symbol.size())).getAddress());
}

int64_t LoadedCode::bytes() const { return state_->memory.bytes; }

}  // namespace cpu
