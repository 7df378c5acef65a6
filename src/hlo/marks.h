// Marks: identities that a program's author put around values, to say something about them. They
// are custom calls, which no engine runs: who makes a program for an engine takes them out
// (lazy/resolve_marks.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "hlo/builder.h"

namespace hlo {

// The first is called as PyTorch/XLA calls it.
inline constexpr char kCompositeMark[] = "xla_mark_tensor";
inline constexpr char kLocationMark[] = "xla_mark_location";

// A value at the border of a composite.
struct CompositeMark {
  std::string name, id;  // of the composite; `id` tells composites of one name apart
  int64_t position = 0;  // among the inputs, or among the outputs
  bool is_input = false;
  AttributeDictionary attributes;  // the composite's; those of its outputs count
};

inline Value Mark(Builder& builder, Value value, const char* target,
                  AttributeDictionary dictionary) {
  CustomCallAttributes call;
  call.target = target;
  call.api_version = 4;  // the one that has a dictionary
  call.dictionary = std::move(dictionary);
  return builder.CustomCall({value}, value->shape(), std::move(call));
}

inline Value MarkComposite(Builder& builder, Value value, const CompositeMark& mark) {
  return Mark(builder, value, kCompositeMark,
              {{"name", {.value = mark.name}},
               {"id", {.value = mark.id}},
               {"position", {.value = mark.position, .element_type = ElementType::kS64}},
               {"is_input", {.value = mark.is_input}},
               {"attributes", {.value = mark.attributes}}});
}

// Says where the operation that made `value` comes from: its location's name, for people.
inline Value MarkLocation(Builder& builder, Value value, const std::string& name) {
  return Mark(builder, value, kLocationMark, {{"name", {.value = name}}});
}

}  // namespace hlo
