// Types, attributes and locations of MLIR's textual form, into a Program as bytecode would state
// them.
// One parser in several files: text_types.cc, text_tensors.cc, text_lists.cc, text_locations.cc,
// and text_attribute_parser.cc with the rest.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/bytecode_encoder.h"
#include "hlo/bytecode_program.h"
#include "hlo/text_lexer.h"

namespace hlo::text {

// VHLO has no attribute for what StableHLO calls dimension numbers or a channel: their fields are
// the operation's own attributes. Such a value has `fields` and no id.
struct ParsedAttribute {
  bytecode::AttributeId id = bytecode::kNone;
  std::vector<bytecode::NamedAttribute> fields = {};
};

class AttributeParser {
 public:
  AttributeParser(Lexer& lexer, bytecode::Program& program)
      : lexer_(lexer), program_(program), encoder_(program) {}

  bytecode::Encoder& encoder() { return encoder_; }

  bytecode::TypeId ParseType();
  // Types between parentheses, or one without them: a function's results.
  std::vector<bytecode::TypeId> ParseTypeList();
  ParsedAttribute Parse();
  // "{a = 1, b}", each once.
  std::vector<bytecode::NamedAttribute> ParseEntries();
  bytecode::AttributeId ParseDictionary();
  bool AtLocation() const { return lexer_.Is("loc"); }
  bytecode::AttributeId ParseLocation();  // "loc(…)"

  // "[1, 2]", as a tensor.
  bytecode::AttributeId ParseIntegerList();
  std::vector<int64_t> ParseIntegers();
  // "[[0, 1], [2, 3]]", as a tensor of rows.
  bytecode::AttributeId ParsePairs();
  bytecode::AttributeId ParseBoolList();  // of true, false, 1 and 0
  bytecode::AttributeId ParseEnumerator(std::string_view attribute);
  bytecode::AttributeId ParseEnumerators(std::string_view attribute);  // "[HIGH, DEFAULT]"
  // "[b, f, 0]x[i, o, 0]->[b, f, 0]".
  std::vector<bytecode::NamedAttribute> ParseConvolution();

  // "#loc1 = loc(…)", "#map = …", "!t = …".
  void ParseAlias();
  // "{-# dialect_resources: … #-}": the data of dense_resource constants.
  void ParseResources();
  // Once all is read: aliases and data that come after their uses.
  void Finish();

  std::string_view Own(std::string text) { return program_.Own(std::move(text)); }

 private:
  // Bounds how deep things are nested, which keeps hostile text from exhausting the stack.
  class Depth {
   public:
    explicit Depth(AttributeParser& parser) : parser_(parser) {
      constexpr int kMaxDepth = 64;
      if (++parser_.depth_ > kMaxDepth) parser_.lexer_.Fail("this is nested too deep");
    }
    ~Depth() { --parser_.depth_; }

   private:
    AttributeParser& parser_;
  };
  struct Pending {
    bytecode::AttributeId id;
    size_t offset;
    bool defined = false;
  };
  struct Resource {
    bytecode::AttributeId id;
    std::string key;
    size_t offset;
  };

  bytecode::TypeId Element(ElementType type) { return encoder_.ElementTypeOf(type); }
  bytecode::TypeId Unsupported(std::string_view name);
  bytecode::TypeId ParseWordType();
  bytecode::TypeId ParseTensorType();
  bytecode::TypeId ParseFunctionType();
  bytecode::TypeId ParseTuple();
  bytecode::TypeId ParseBangType();
  bool AtType() const;
  bytecode::AttributeId ParseId();
  bytecode::AttributeId ParseNumber();
  bytecode::AttributeId ParseArray();
  bytecode::AttributeId ParseDense();
  bytecode::AttributeId ParseDenseArray();
  bytecode::AttributeId ParseDenseResource();
  ParsedAttribute ParseHash();
  ParsedAttribute ParseStablehlo(std::string_view name);
  ParsedAttribute ParseFields(std::string_view name);
  void AddFieldDefault(std::string_view name, ParsedAttribute& parsed);
  bytecode::AttributeId ParseFieldValue();
  bytecode::AttributeId ParseOutputAlias();
  bytecode::AttributeId ParseEnumeration();
  bytecode::AttributeId ParseLocationBody();
  bytecode::AttributeId ParseFileLocation(bytecode::AttributeId file);
  bytecode::AttributeId LocationAlias(const Token& token);
  int64_t TakeLine();
  bytecode::AttributeId TensorOf(bytecode::TypeId type, std::string_view bytes);
  bytecode::AttributeId Opaque();
  const Dimensions& StaticSizes(bytecode::TypeId type);
  void AppendNested(bytecode::TypeId type, size_t depth, std::string& bytes);
  void AppendElement(bytecode::TypeId element, std::string& bytes);
  void AppendPart(ElementType type, std::string& bytes);
  std::vector<bytecode::NamedAttribute> ConvolutionSide(std::string_view side,
                                                        std::string_view batch,
                                                        std::string_view feature, char batch_letter,
                                                        char feature_letter);

  Lexer& lexer_;
  bytecode::Program& program_;
  bytecode::Encoder encoder_;
  int depth_ = 0;
  std::unordered_map<std::string_view, ParsedAttribute> attribute_aliases_;
  std::unordered_map<std::string_view, bytecode::TypeId> type_aliases_;
  std::unordered_map<std::string_view, Pending> locations_;
  std::vector<Resource> wanted_resources_;
  std::unordered_map<std::string, std::string_view> resources_;  // the program owns the data
};

}  // namespace hlo::text
