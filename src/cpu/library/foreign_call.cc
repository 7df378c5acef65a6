// Custom calls of handlers that somebody else has compiled (cpu/foreign_interface.h).
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cpu/foreign_handlers.h"
#include "cpu/library/bind.h"
#include "hlo/attributes.h"
#include "hlo/error.h"
#include "hlo/literal.h"
#include "hlo/shape.h"
#include "process/fork.h"

namespace cpu {

struct ffi::Error {
  std::string message;
  hlo::ErrorCode code;
};

struct ffi::Context {
  const RunOptions& options;
};

// Set once, by any thread.
struct ffi::Future {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  Error* error = nullptr;

  void Set(Error* failure) {
    std::lock_guard lock(mutex);
    is_done = true;
    error = failure;
    changed.notify_all();
  }
  Error* Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return is_done; });
    return error;
  }
};

namespace {

using hlo::ElementType;

// XLA's numbers of element types.
int32_t TypeNumber(ElementType type) {
  switch (type) {
    case ElementType::kPred:
      return 1;
    case ElementType::kS8:
      return 2;
    case ElementType::kS16:
      return 3;
    case ElementType::kS32:
      return 4;
    case ElementType::kS64:
      return 5;
    case ElementType::kU8:
      return 6;
    case ElementType::kU16:
      return 7;
    case ElementType::kU32:
      return 8;
    case ElementType::kU64:
      return 9;
    case ElementType::kF16:
      return 10;
    case ElementType::kF32:
      return 11;
    case ElementType::kF64:
      return 12;
    case ElementType::kC64:
      return 15;
    case ElementType::kBF16:
      return 16;
    case ElementType::kToken:
      return 17;
    case ElementType::kC128:
      return 18;
    case ElementType::kF8E5M2:
      return 19;
    case ElementType::kF8E4M3FN:
      return 20;
    default:
      throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                       "foreign functions take no " + std::string(hlo::ShortName(type)) + " here");
  }
}

// ---- The table of functions for handlers.

ffi::Error* NewError(hlo::ErrorCode code, std::string message) {
  return new ffi::Error{std::move(message), code};
}
ffi::Error* CreateError(ffi::ErrorCreateArgs* args) {
  const bool is_known = args->code >= static_cast<int>(hlo::ErrorCode::kCancelled) &&
                        args->code <= static_cast<int>(hlo::ErrorCode::kUnauthenticated);
  return NewError(is_known ? static_cast<hlo::ErrorCode>(args->code) : hlo::ErrorCode::kUnknown,
                  args->message == nullptr ? "" : args->message);
}
void GetMessage(ffi::ErrorMessageArgs* args) { args->message = args->error->message.c_str(); }
void DestroyError(ffi::ErrorDestroyArgs* args) { delete args->error; }

// Streams and memory of a device, states of calls: of engines that are not in the host's memory, or
// that prepare calls before they run them.
ffi::Error* NotHere(ffi::Header*) {
  return NewError(hlo::ErrorCode::kUnimplemented,
                  "the CPU engine has no streams, device memory or states for foreign functions");
}

ffi::Error* GetData(ffi::ContextGetArgs* args) {
  for (const ForeignData& entry : args->context->options.foreign_data) {
    if (entry.type_id != *args->type_id) continue;
    args->data = entry.data;
    return nullptr;
  }
  return NewError(hlo::ErrorCode::kNotFound,
                  "whoever runs the program has given no data of the type that the foreign "
                  "function asks for (number " +
                      std::to_string(*args->type_id) + ")");
}

// On the thread of the call, which the interface allows: a program's steps have the others.
ffi::Error* RunTask(ffi::TaskArgs* args) {
  args->task(args->data);
  return nullptr;
}
ffi::Error* CountThreads(ffi::NumThreadsArgs* args) {
  *args->num_threads = 1;
  return nullptr;
}

ffi::Error* CreateFuture(ffi::FutureCreateArgs* args) {
  args->future = new ffi::Future;
  return nullptr;
}
ffi::Error* SetFuture(ffi::FutureSetArgs* args) {
  args->future->Set(nullptr);
  return nullptr;
}
ffi::Error* FailFuture(ffi::FutureFailArgs* args) {
  args->future->Set(args->error);
  return nullptr;
}

ffi::Error* GetDeviceOrdinal(ffi::DeviceOrdinalArgs* args) {
  args->device_ordinal = args->context->options.device_ordinal;
  return nullptr;
}

constexpr ffi::Api kApi{
    .header = {sizeof(ffi::Api), nullptr},
    .version = {{sizeof(ffi::ApiVersion), nullptr}, 0, 3},
    .internal = nullptr,
    .error_create = CreateError,
    .error_message = GetMessage,
    .error_destroy = DestroyError,
    .handler_register = NotHere,
    .stream_get = NotHere,
    .type_register = NotHere,
    .context_get = GetData,
    .state_set = NotHere,
    .state_get = NotHere,
    .memory_allocate = NotHere,
    .memory_free = NotHere,
    .task_schedule = RunTask,
    .num_threads = CountThreads,
    .future_create = CreateFuture,
    .future_set = SetFuture,
    .future_fail = FailFuture,
    .run_id = NotHere,
    .device_ordinal = GetDeviceOrdinal,
};

// ---- What a call passes.

// A dictionary in the interface's form. Parts of it point to others, which stay where they are.
class Dictionary {
 public:
  explicit Dictionary(const hlo::AttributeDictionary& entries) {
    for (const auto& [name, entry] : entries) {
      names_.push_back({name.data(), name.size()});
      name_pointers_.push_back(&names_.back());
      Add(entry);
    }
    form_ = {{sizeof form_, nullptr},
             static_cast<int64_t>(values_.size()),
             kinds_.data(),
             name_pointers_.data(),
             values_.data()};
  }
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  const ffi::Attributes& form() const { return form_; }

 private:
  void Add(const hlo::AttributeValue& entry) {
    std::visit([&](const auto& value) { Add(value, entry.element_type); }, entry.value);
  }
  void AddValue(ffi::AttributeKind kind, void* value) {
    kinds_.push_back(kind);
    values_.push_back(value);
  }

  void Add(bool value, ElementType) { AddScalar(hlo::Literal::Scalar(value)); }
  void Add(int64_t value, ElementType type) { AddScalar(Number(value, type)); }
  void Add(double value, ElementType type) { AddScalar(Number(value, type)); }
  void Add(const std::string& value, ElementType) {
    strings_.push_back({value.data(), value.size()});
    AddValue(ffi::AttributeKind::kString, &strings_.back());
  }
  template <typename T>
  void Add(const std::vector<T>& values, ElementType type) {
    hlo::Literal array(hlo::Shape(type, {static_cast<int64_t>(values.size())}));
    std::byte* next = array.mutable_bytes();
    for (T value : values) next = Append(Number(value, type), next);
    AddArray(std::move(array));
  }
  void Add(const hlo::Literal& value, ElementType) { AddArray(value); }
  void Add(const hlo::AttributeDictionary& value, ElementType) {
    dictionaries_.emplace_back(value);
    AddValue(ffi::AttributeKind::kDictionary, &dictionaries_.back().form_);
  }
  void Add(const std::vector<hlo::AttributeValue>&, ElementType) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented, "foreign functions take no lists");
  }

  void AddScalar(hlo::Literal value) {
    const int32_t type = TypeNumber(value.shape().element_type());
    numbers_.push_back(std::move(value));
    scalars_.push_back({type, numbers_.back().bytes()});
    AddValue(ffi::AttributeKind::kScalar, &scalars_.back());
  }
  void AddArray(hlo::Literal value) {
    const int32_t type = TypeNumber(value.shape().element_type());
    const auto size = static_cast<size_t>(value.shape().num_elements());
    numbers_.push_back(std::move(value));
    arrays_.push_back({type, size, numbers_.back().bytes()});
    AddValue(ffi::AttributeKind::kArray, &arrays_.back());
  }

  static std::byte* Append(const hlo::Literal& value, std::byte* to) {
    return std::copy_n(value.bytes(), value.byte_size(), to);
  }
  static hlo::Literal Number(int64_t value, ElementType type) {
    return hlo::Literal::FromInt(type, value);
  }
  static hlo::Literal Number(double value, ElementType type) {
    return hlo::Literal::FromDouble(type, value);
  }

  // Deques, whose elements stay where they are.
  std::deque<ffi::Bytes> names_, strings_;
  std::deque<hlo::Literal> numbers_;
  std::deque<ffi::Scalar> scalars_;
  std::deque<ffi::Array> arrays_;
  std::deque<Dictionary> dictionaries_;
  std::vector<ffi::AttributeKind> kinds_;
  std::vector<ffi::Bytes*> name_pointers_;
  std::vector<void*> values_;
  ffi::Attributes form_;
};

// The operands of a call, or its results. Handlers do not write into types and sizes, although the
// interface does not say so.
class Buffers {
 public:
  Buffers(std::span<const hlo::Shape> shapes, const void* const* data) {
    const void* const* next = data;
    buffers_.reserve(shapes.size());
    for (const hlo::Shape& shape : shapes) {
      buffers_.push_back({{sizeof(ffi::Buffer), nullptr},
                          TypeNumber(shape.element_type()),
                          shape.is_token() ? nullptr : const_cast<void*>(*next++),
                          static_cast<int64_t>(shape.dimensions().size()),
                          const_cast<int64_t*>(shape.dimensions().data())});
      pointers_.push_back(&buffers_.back());
    }
    kinds_.assign(shapes.size(), ffi::kBufferKind);
  }

  ffi::Values form() {
    return {{sizeof(ffi::Values), nullptr},
            static_cast<int64_t>(pointers_.size()),
            kinds_.data(),
            pointers_.data()};
  }

 private:
  std::vector<ffi::Buffer> buffers_;
  std::vector<void*> pointers_;
  std::vector<int32_t> kinds_;
};

class ForeignCall : public LibraryCall {
 public:
  ForeignCall(const hlo::Instruction& call, ffi::Handler* handler)
      : target_(call.as<hlo::CustomCallAttributes>().target),
        handler_(handler),
        dictionary_(call.as<hlo::CustomCallAttributes>().dictionary),
        attributes_(dictionary_) {
    for (const hlo::Instruction* operand : call.operands()) operands_.push_back(operand->shape());
    if (call.shape().is_tuple()) {
      for (const hlo::Shape& shape : call.shape().tuple_shapes()) results_.push_back(shape);
    } else {
      results_.push_back(call.shape());
    }
    for (const auto& alias : call.as<hlo::CustomCallAttributes>().output_operand_aliases) {
      aliases_.push_back(MemoryOf(alias));
    }
    for (const auto* shapes : {&operands_, &results_}) {
      for (const hlo::Shape& shape : *shapes) TypeNumber(shape.element_type());
    }
  }

  void Run(const CallContext& context, const void* const* operands,
           void* const* results) const override {
    ffi::Context handlers_context{context.options};
    const std::vector<const void*> read = WithAliases(operands, results);
    Buffers given(operands_, read.data()), wanted(results_, results);
    ffi::CallFrame frame{.header = {offsetof(ffi::CallFrame, future), nullptr},
                         .api = &kApi,
                         .context = &handlers_context,
                         .stage = ffi::Stage::kExecute,
                         .operands = given.form(),
                         .results = wanted.form(),
                         .attributes = attributes_.form(),
                         .future = nullptr};
    const process::MayFork elsewhere;  // a callback may wait for the thread that forks
    std::unique_ptr<ffi::Error> error(handler_(&frame));
    const std::unique_ptr<ffi::Future> future(frame.future);
    if (future != nullptr) {
      std::unique_ptr<ffi::Error> of_future(future->Wait());
      if (error == nullptr) error = std::move(of_future);
    }
    if (error != nullptr) throw hlo::Error(error->code, error->message);
  }
  std::string Description() const override { return "foreign function " + target_; }

 private:
  // An operand and a result that lie in the same memory; places among those that have memory.
  struct Alias {
    size_t operand, result, bytes;
  };

  Alias MemoryOf(const hlo::OutputOperandAlias& alias) const {
    const auto& path = alias.output_tuple_indices;
    const auto operand = static_cast<size_t>(alias.operand_index);
    const size_t result = path.empty() ? 0 : static_cast<size_t>(path[0]);
    if (path.size() > 1 || !alias.operand_tuple_indices.empty() || result >= results_.size() ||
        operands_[operand].is_token() || !(operands_[operand] == results_[result])) {
      throw hlo::Error(hlo::ErrorCode::kInvalidArgument,
                       "an operand and a result of " + target_ + " that are to be one differ");
    }
    return {MemoryBefore(operands_, operand), MemoryBefore(results_, result),
            static_cast<size_t>(operands_[operand].byte_size())};
  }
  static size_t MemoryBefore(std::span<const hlo::Shape> shapes, size_t place) {
    return place - std::ranges::count_if(shapes.first(place), &hlo::Shape::is_token);
  }

  // Where the operands lie. The values of those that results replace are copied there.
  std::vector<const void*> WithAliases(const void* const* operands, void* const* results) const {
    std::vector<const void*> read(operands, operands + MemoryBefore(operands_, operands_.size()));
    for (const Alias& alias : aliases_) {
      read[alias.operand] = results[alias.result];
      std::copy_n(static_cast<const std::byte*>(operands[alias.operand]), alias.bytes,
                  static_cast<std::byte*>(results[alias.result]));
    }
    return read;
  }

  std::string target_;
  ffi::Handler* handler_;
  hlo::AttributeDictionary dictionary_;
  Dictionary attributes_;  // points into it
  std::vector<hlo::Shape> operands_, results_;
  std::vector<Alias> aliases_;
};

bool AreRowMajor(const std::vector<hlo::Dimensions>& layouts) {
  for (const hlo::Dimensions& minor_to_major : layouts) {
    if (!std::is_sorted(minor_to_major.rbegin(), minor_to_major.rend())) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<LibraryCall> BindForeignCall(const hlo::Instruction& call) {
  constexpr int64_t kTypedInterface = 4;
  const auto& attributes = call.as<hlo::CustomCallAttributes>();
  ffi::Handler* handler = FindForeignHandler(attributes.target);
  if (handler == nullptr) return nullptr;
  const auto refuse = [&](const std::string& why) {
    throw hlo::Error(hlo::ErrorCode::kUnimplemented,
                     "the CPU engine does not call the handler of " + attributes.target + why);
  };
  if (attributes.api_version != kTypedInterface) {
    refuse(" by api_version " + std::to_string(attributes.api_version) + ", but by 4 alone");
  }
  if (!AreRowMajor(attributes.operand_layouts) || !AreRowMajor(attributes.result_layouts)) {
    refuse(" with layouts that are not row-major");
  }
  return std::make_unique<ForeignCall>(call, handler);
}

}  // namespace cpu
