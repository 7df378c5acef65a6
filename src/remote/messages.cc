#include "remote/messages.h"

#include <google/protobuf/io/coded_stream.h>

#include <chrono>
#include <optional>

#include "pjrt/boundary/layout.h"
#include "pjrt/element_type.h"

namespace remote {
namespace {

// Nothing unless the bytes are requests, one after another, and nothing else.
std::optional<size_t> CountRequests(const std::string& bytes) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  constexpr uint32_t kRequest = wire::Requests::kRequestsFieldNumber << 3 | 2;
  size_t count = 0;
  uint32_t size = 0;
  while (static_cast<size_t>(stream.CurrentPosition()) < bytes.size()) {
    if (stream.ReadTag() != kRequest || !stream.ReadVarint32(&size) || size > kMostMessageBytes ||
        !stream.Skip(static_cast<int>(size))) {
      return {};
    }
    ++count;
  }
  return count;
}

}  // namespace

wire::Requests ParseRequests(const std::string& bytes) {
  const std::optional<size_t> count = CountRequests(bytes);
  if (count && *count > kMostRequests) {
    throw hlo::Error(hlo::ErrorCode::kResourceExhausted,
                     "a message has at most " + std::to_string(kMostRequests) + " requests");
  }
  bool is_one = count.has_value();
  const auto requests = Make<wire::Requests>(
      [&](wire::Requests& message) { is_one = is_one && message.ParseFromString(bytes); });
  if (!is_one) throw hlo::Error("a message is none of this service");
  return std::move(*requests);
}

hlo::Shape FromMessage(const wire::Shape& message) {
  const int type = message.element_type();
  if (type <= PJRT_Buffer_Type_INVALID || type > PJRT_Buffer_Type_F6E3M2FN) {
    throw hlo::Error(std::to_string(type) + " is no element type");
  }
  return pjrt::boundary::ShapeFrom(static_cast<PJRT_Buffer_Type>(type), message.dimensions().data(),
                                   message.dimensions_size());
}

void ToMessage(const hlo::Shape& shape, wire::Shape* message) {
  message->set_element_type(pjrt::ToBufferType(shape.element_type()));
  message->mutable_dimensions()->Assign(shape.dimensions().begin(), shape.dimensions().end());
}

pjrt::NamedValues FromMessage(const google::protobuf::RepeatedPtrField<wire::NamedValue>& values) {
  pjrt::NamedValues result;
  for (const wire::NamedValue& value : values) {
    pjrt::NamedValue& target = result[value.name()];
    switch (value.value_case()) {
      case wire::NamedValue::kInteger:
        target = value.integer();
        break;
      case wire::NamedValue::kIntegers:
        target = std::vector<int64_t>(value.integers().values().begin(),
                                      value.integers().values().end());
        break;
      case wire::NamedValue::kReal:
        target = value.real();
        break;
      case wire::NamedValue::kTruth:
        target = value.truth();
        break;
      default:
        target = value.text();
    }
  }
  return result;
}

void ToMessage(const pjrt::NamedValues& values,
               google::protobuf::RepeatedPtrField<wire::NamedValue>* messages) {
  for (const auto& [name, value] : values) {
    wire::NamedValue* message = messages->Add();
    message->set_name(name);
    if (const auto* text = std::get_if<std::string>(&value)) message->set_text(*text);
    if (const auto* number = std::get_if<int64_t>(&value)) message->set_integer(*number);
    if (const auto* number = std::get_if<float>(&value)) message->set_real(*number);
    if (const auto* truth = std::get_if<bool>(&value)) message->set_truth(*truth);
    if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) {
      message->mutable_integers()->mutable_values()->Assign(numbers->begin(), numbers->end());
    }
  }
}

hlo::Error FromMessage(const wire::Error& message) {
  const int code = message.code();
  const bool known = code > PJRT_Error_Code_OK && code <= PJRT_Error_Code_UNAUTHENTICATED;
  return hlo::Error(known ? static_cast<hlo::ErrorCode>(code) : hlo::ErrorCode::kUnknown,
                    message.message());
}

void ToMessage(const hlo::Error& error, wire::Error* message) {
  message->set_code(static_cast<int>(error.code()));
  message->set_message(error.what());
}

int64_t NanosecondsSinceEpoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::nanoseconds(now).count();
}

}  // namespace remote
