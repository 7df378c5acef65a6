// Handlers as a foreign library would have them, called by custom calls.
#include <string>
#include <thread>
#include <vector>

#include "cpu/foreign_handlers.h"
#include "hlo/error.h"
#include "library_testing.h"

namespace cpu {
namespace {

using hlo::AttributeDictionary;
using hlo::ElementType;
using hlo::Literal;
using testing::RunLibraryCall;

struct Seen {
  std::vector<std::string> names;
  std::vector<ffi::AttributeKind> kinds;
  double numbers = 0;
  std::string text;
  std::vector<int64_t> sizes;
} seen;

template <typename T>
T At(const void* data, size_t i = 0) {
  return static_cast<const T*>(data)[i];
}

void Note(const ffi::Attributes& attributes) {
  for (int64_t i = 0; i < attributes.size; ++i) {
    seen.names.emplace_back(attributes.names[i]->data, attributes.names[i]->size);
    seen.kinds.push_back(attributes.kinds[i]);
    const void* value = attributes.values[i];
    if (attributes.kinds[i] == ffi::AttributeKind::kDictionary) {
      Note(*static_cast<const ffi::Attributes*>(value));
    } else if (attributes.kinds[i] == ffi::AttributeKind::kString) {
      const auto& bytes = *static_cast<const ffi::Bytes*>(value);
      seen.text = std::string(bytes.data, bytes.size);
    } else if (attributes.kinds[i] == ffi::AttributeKind::kArray) {
      const auto& array = *static_cast<const ffi::Array*>(value);
      for (size_t k = 0; k < array.size; ++k) seen.numbers += At<int16_t>(array.data, k);
    } else if (const auto& scalar = *static_cast<const ffi::Scalar*>(value); scalar.type == 12) {
      seen.numbers += At<double>(scalar.value);
    } else {
      seen.numbers += static_cast<double>(At<uint64_t>(scalar.value));
    }
  }
}

// Twice the operand, and what it was given otherwise.
ffi::Error* Double(ffi::CallFrame* frame) {
  Note(frame->attributes);
  const auto& x = *static_cast<const ffi::Buffer*>(frame->operands.values[0]);
  const auto& y = *static_cast<const ffi::Buffer*>(frame->results.values[0]);
  seen.sizes.assign(x.dimensions, x.dimensions + x.rank);
  for (int64_t i = 0; i < x.dimensions[0] * x.dimensions[1]; ++i) {
    static_cast<float*>(y.data)[i] = 2 * At<float>(x.data, i);
  }
  return nullptr;
}

// Adds one to the result, where the operand is expected to lie.
ffi::Error* Increment(ffi::CallFrame* frame) {
  const auto& x = *static_cast<const ffi::Buffer*>(frame->operands.values[0]);
  const auto& y = *static_cast<const ffi::Buffer*>(frame->results.values[0]);
  seen.numbers = x.data == y.data;
  for (int64_t i = 0; i < x.dimensions[0] * x.dimensions[1]; ++i) {
    static_cast<float*>(y.data)[i] += 1;
  }
  return nullptr;
}

ffi::Error* Fail(ffi::CallFrame* frame) {
  ffi::ErrorCreateArgs args{{sizeof args, nullptr}, "it cannot be done", 9};
  return frame->api->error_create(&args);
}

// With a code that is no error's, and no words.
ffi::Error* FailWithout(ffi::CallFrame* frame) {
  ffi::ErrorCreateArgs args{{sizeof args, nullptr}, nullptr, 0};
  return frame->api->error_create(&args);
}

ffi::Error* AskForState(ffi::CallFrame* frame) { return frame->api->state_get(nullptr); }

// Ends on another thread.
ffi::Error* FailLater(ffi::CallFrame* frame) {
  ffi::FutureCreateArgs create{{sizeof create, nullptr}, nullptr};
  frame->api->future_create(&create);
  frame->future = create.future;
  std::thread([api = frame->api, future = create.future] {
    ffi::ErrorCreateArgs error{{sizeof error, nullptr}, "too late", 4};
    ffi::FutureFailArgs args{{sizeof args, nullptr}, future, api->error_create(&error)};
    api->future_fail(&args);
  }).detach();
  return nullptr;
}

AttributeDictionary Dictionary() {
  AttributeDictionary inner, dictionary;
  inner["text"].value = std::string("words");
  dictionary["number"] = {int64_t{7}, ElementType::kU64};
  dictionary["array"] = {std::vector<int64_t>{1, -2, 300}, ElementType::kS16};
  dictionary["real"] = {0.5, ElementType::kF64};
  dictionary["inner"].value = inner;
  return dictionary;
}

std::vector<Literal> Call(const std::string& target, const Literal& operand,
                          AttributeDictionary dictionary = {}, int64_t api_version = 4,
                          std::vector<hlo::OutputOperandAlias> aliases = {}) {
  hlo::Module module;
  module.set_entry(module.AddComputation("main"));
  hlo::Builder builder(module.entry());
  hlo::CustomCallAttributes attributes;
  attributes.target = target;
  attributes.api_version = api_version;
  attributes.dictionary = std::move(dictionary);
  attributes.output_operand_aliases = std::move(aliases);
  return RunLibraryCall(
      *builder.CustomCall({builder.Parameter(operand.shape())}, operand.shape(), attributes),
      {operand});
}

const Literal kOperand = Literal::FromVector(std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3});

TEST(ForeignCall, PassesBuffersAndAttributes) {
  RegisterForeignHandler("double", Double);
  seen = {};
  const auto results = Call("double", kOperand, Dictionary());
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0], Literal::FromVector(std::vector<float>{2, 4, 6, 8, 10, 12}, {2, 3}));
  EXPECT_EQ(seen.names, (std::vector<std::string>{"array", "inner", "text", "number", "real"}));
  EXPECT_EQ(seen.kinds, (std::vector{ffi::AttributeKind::kArray, ffi::AttributeKind::kDictionary,
                                     ffi::AttributeKind::kString, ffi::AttributeKind::kScalar,
                                     ffi::AttributeKind::kScalar}));
  EXPECT_EQ(seen.numbers, 1 - 2 + 300 + 7 + 0.5);
  EXPECT_EQ(seen.text, "words");
  EXPECT_EQ(seen.sizes, (std::vector<int64_t>{2, 3}));
}

TEST(ForeignCall, ResultsLieInOperandsOfTheirs) {
  RegisterForeignHandler("increment", Increment);
  const auto results = Call("increment", kOperand, {}, 4, {{{}, 0, {}}});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0], Literal::FromVector(std::vector<float>{2, 3, 4, 5, 6, 7}, {2, 3}));
  EXPECT_EQ(seen.numbers, 1);
  EXPECT_THROW(Call("increment", kOperand, {}, 4, {{{1}, 0, {}}}), hlo::Error);
}

TEST(ForeignCall, ErrorsAreTheHandlers) {
  RegisterForeignHandler("fail", Fail);
  RegisterForeignHandler("fail without", FailWithout);
  RegisterForeignHandler("fail later", FailLater);
  RegisterForeignHandler("ask for state", AskForState);
  const auto error_of = [](const char* target) {
    try {
      Call(target, kOperand);
    } catch (const hlo::Error& error) {
      return std::pair(error.code(), std::string(error.what()));
    }
    return std::pair(hlo::ErrorCode::kCancelled, std::string("no error"));
  };
  EXPECT_EQ(error_of("fail"),
            std::pair(hlo::ErrorCode::kFailedPrecondition, std::string("it cannot be done")));
  EXPECT_EQ(error_of("fail without"), std::pair(hlo::ErrorCode::kUnknown, std::string()));
  EXPECT_EQ(error_of("fail later"),
            std::pair(hlo::ErrorCode::kDeadlineExceeded, std::string("too late")));
  EXPECT_EQ(error_of("ask for state").first, hlo::ErrorCode::kUnimplemented);
}

TEST(ForeignCall, NeedsAHandlerOfTheTypedInterface) {
  RegisterForeignHandler("typed", Double);
  EXPECT_TRUE(Call("nobody's", kOperand).empty());
  EXPECT_THROW(Call("typed", kOperand, {}, 2), hlo::Error);
  EXPECT_EQ(Call("typed", kOperand).size(), 1u);
}

TEST(ForeignCall, NamesKeepTheirHandlersAndNumbers) {
  RegisterForeignHandler("kept", Double);
  RegisterForeignHandler("kept", Double);
  EXPECT_THROW(RegisterForeignHandler("kept", Fail), hlo::Error);
  EXPECT_THROW(RegisterForeignHandler("none", nullptr), hlo::Error);
  const int64_t first = RegisterForeignType("first", 0), second = RegisterForeignType("second", 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(RegisterForeignType("first", 0), first);
  EXPECT_EQ(RegisterForeignType("third", 12), 12);
  EXPECT_THROW(RegisterForeignType("third", 13), hlo::Error);
}

}  // namespace
}  // namespace cpu
