#include "hlo/bytecode_container.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "hlo/bytecode_attributes.h"
#include "hlo/bytecode_operations.h"
#include "hlo/bytecode_stream.h"

namespace hlo::bytecode {
namespace {

constexpr std::string_view kModule = "builtin.module";
constexpr uint64_t kWrittenVersion = 6;

// The bytecode versions from which on things are encoded differently.
enum Version : uint64_t {
  kDialectVersions = 1,
  kLazyRegions = 2,      // isolated regions are sections of their own
  kUseListOrders = 3,    //
  kElidedLocations = 4,  // of block arguments; the number of operation names is stated
  kProperties = 5,       //
  kLatestVersion = 6,
};

enum SectionId : uint8_t {
  kStringSection = 0,
  kDialectSection = 1,
  kAttributeSection = 2,
  kOffsetSection = 3,
  kIrSection = 4,
  kResourceSection = 5,
  kResourceOffsetSection = 6,
  kDialectVersionSection = 7,
  kPropertySection = 8,
  kSectionCount = 9,
};

enum OperationMask : uint8_t {
  kHasAttributes = 0x01,
  kHasResults = 0x02,
  kHasOperands = 0x04,
  kHasSuccessors = 0x08,
  kHasRegions = 0x10,
  kHasUseListOrders = 0x20,
  kHasProperties = 0x40,
  kAllMasks = 0x7f,
};

constexpr int kMaxRegionDepth = 100;
// More than any operation has; bounds the work that one dictionary, shared by many operations,
// makes.
constexpr size_t kMaxDictionary = 1024;

struct Section {
  uint8_t id;
  ByteReader payload;
};

Section ParseSection(ByteReader& reader) {
  uint8_t head = reader.Byte();
  bool aligned = (head & 0x80) != 0;
  uint64_t length = reader.Varint();
  if (aligned) {
    uint64_t alignment = reader.Varint();
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > 4096) {
      reader.Fail("a section alignment of " + std::to_string(alignment));
    }
    while (reader.offset() % alignment != 0) {
      if (reader.Byte() != 0xcb) reader.Fail("wrong padding before a section");
    }
  }
  return {static_cast<uint8_t>(head & 0x7f), reader.Sub(length)};
}

// Types and attributes come as sizes grouped by dialect, and their bytes in that order.
struct Entry {
  Dialect dialect;
  bool custom;  // encoded by the dialect; otherwise MLIR text
  ByteReader bytes;
};

class Parser {
 public:
  explicit Parser(std::span<const std::byte> bytes) : file_(bytes, 0) {}

  Program Parse() {
    ParseHeader();
    ParseSections();
    ParseStrings(Mandatory(kStringSection, "strings"));
    ParseDialects(Mandatory(kDialectSection, "dialects"));
    if (version_ >= kProperties) ParseProperties(Mandatory(kPropertySection, "properties"));
    ParseEntries();
    ByteReader ir = Mandatory(kIrSection, "operations");
    ParseBlock(ir, program_.top, 0, 0, 0);
    ir.ExpectEnd("the operations");
    return std::move(program_);
  }

 private:
  void ParseHeader() {
    std::span<const std::byte> magic = file_.Bytes(kMagic.size());
    if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic) {
      FailAt(0, "this is not MLIR bytecode");
    }
    version_ = file_.Varint();
    if (version_ > kLatestVersion) {
      file_.Fail("bytecode version " + std::to_string(version_) + " is newer than " +
                 std::to_string(kLatestVersion) + ", which is the newest that is understood");
    }
    program_.producer = file_.NullTerminated();
  }

  void ParseSections() {
    while (!file_.AtEnd()) {
      size_t start = file_.offset();
      Section section = ParseSection(file_);
      if (section.id >= kSectionCount) {
        FailAt(start, "unknown section " + std::to_string(section.id));
      }
      if (sections_[section.id]) {
        FailAt(start, "section " + std::to_string(section.id) + " occurs twice");
      }
      sections_[section.id] = section.payload;
    }
  }

  ByteReader Mandatory(SectionId id, const char* what) {
    if (!sections_[id]) file_.Fail("there is no section with the " + std::string(what));
    return *sections_[id];
  }

  void ParseStrings(ByteReader reader) {
    size_t count = reader.Count("strings");
    std::vector<uint64_t> sizes(count);
    for (size_t i = count; i-- > 0;) sizes[i] = reader.Varint();
    strings_.reserve(count);
    for (uint64_t size : sizes) {
      if (size == 0) reader.Fail("a string without a terminator");
      std::span<const std::byte> bytes = reader.Bytes(size);
      strings_.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size() - 1);
    }
    reader.ExpectEnd("the strings");
  }

  std::string_view String(uint64_t index, const ByteReader& reader) {
    if (index >= strings_.size()) {
      reader.Fail("string " + std::to_string(index) + " is out of range, there are " +
                  std::to_string(strings_.size()));
    }
    return strings_[static_cast<size_t>(index)];
  }

  void ParseDialects(ByteReader reader) {
    size_t count = reader.Count("dialects");
    for (size_t i = 0; i < count; ++i) {
      uint64_t coded = reader.Varint();
      if (version_ >= kDialectVersions) {
        if ((coded & 1) != 0) ParseSection(reader);  // the dialect's own version: VHLO has none
        coded >>= 1;
      }
      dialects_.push_back(String(coded, reader));
    }
    if (version_ >= kElidedLocations) reader.Count("operation names");
    while (!reader.AtEnd()) {
      std::string_view dialect = dialects_[reader.Index(dialects_.size(), "dialect")];
      size_t names = reader.Count("operation names");
      for (size_t i = 0; i < names; ++i) {
        uint64_t coded = reader.Varint();
        if (version_ >= kProperties) coded >>= 1;  // the lowest bit: the operation is registered
        AddOperationName(dialect, String(coded, reader), reader);
      }
    }
  }

  void AddOperationName(std::string_view dialect, std::string_view name, const ByteReader& reader) {
    // One dialect name or operation name may be listed again and again: together they must stay
    // small.
    constexpr size_t kMaxLength = 256;
    if (dialect.size() + name.size() > kMaxLength) reader.Fail("an operation name is too long");
    std::string full = std::string(dialect) + "." + std::string(name);
    operations_.push_back(FindOperation(full));
    program_.operation_names.push_back(program_.Own(std::move(full)));
  }

  void ParseProperties(ByteReader reader) {
    size_t count = reader.Count("properties");
    properties_.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      uint64_t size = reader.Varint();
      properties_.push_back(reader.Sub(size));
    }
    reader.ExpectEnd("the properties");
  }

  std::vector<Entry> EntryTable(ByteReader& offsets, ByteReader& data, size_t count) {
    std::vector<Entry> entries;
    entries.reserve(count);
    while (entries.size() < count) {
      Dialect dialect = DialectFromName(dialects_[offsets.Index(dialects_.size(), "dialect")]);
      size_t start = offsets.offset();
      size_t group = offsets.Count("entries");
      if (group == 0 || group > count - entries.size()) FailAt(start, "a group of wrong size");
      for (size_t i = 0; i < group; ++i) {
        uint64_t coded = offsets.Varint();
        entries.push_back({dialect, (coded & 1) != 0, data.Sub(coded >> 1)});
      }
    }
    return entries;
  }

  void ParseEntries() {
    ByteReader offsets = Mandatory(kOffsetSection, "attribute offsets");
    ByteReader data = Mandatory(kAttributeSection, "attributes");
    size_t attribute_count = offsets.Count("attributes");
    size_t type_count = offsets.Count("types");
    std::vector<Entry> attributes = EntryTable(offsets, data, attribute_count);
    std::vector<Entry> types = EntryTable(offsets, data, type_count);
    data.ExpectEnd("the types");
    References references{strings_, type_count, attribute_count, {}};
    for (const Entry& entry : types) {
      program_.types.push_back(entry.custom ? ParseType(entry.bytes, entry.dialect, references)
                                            : Type{.name = "foreign"});
    }
    references.types = program_.types;
    for (const Entry& entry : attributes) {
      program_.attributes.push_back(
          entry.custom ? ParseAttribute(entry.bytes, entry.dialect, references) : Attribute{});
    }
  }

  uint32_t TypeIndex(ByteReader& reader) { return reader.Index(program_.types.size(), "type"); }
  uint32_t AttributeIndex(ByteReader& reader) {
    return reader.Index(program_.attributes.size(), "attribute");
  }

  // A block's arguments and operations. `next` is the number of its first value; returns how many
  // it defines. `reserved` values belong to the region around (0 for the top level, which states
  // none).
  uint64_t ParseBlock(ByteReader& reader, Region& region, uint64_t next, uint64_t reserved,
                      int depth) {
    uint64_t coded = reader.Varint();
    uint64_t operation_count = coded >> 1;
    if (operation_count > reader.remaining()) reader.Fail("more operations than bytes");
    uint64_t first = next;
    region.first_argument = static_cast<ValueId>(next);
    if ((coded & 1) != 0) {
      next += ParseBlockArguments(reader, region);
    }
    for (uint64_t i = 0; i < operation_count; ++i) {
      Operation& operation = region.operations.emplace_back();
      ParseOperation(reader, operation, next, first + reserved, depth);
      next += operation.result_types.size();
      CollectCaptures(operation, first, region.captures);
    }
    std::sort(region.captures.begin(), region.captures.end());
    region.captures.erase(std::unique(region.captures.begin(), region.captures.end()),
                          region.captures.end());
    return next - first;
  }

  uint64_t ParseBlockArguments(ByteReader& reader, Region& region) {
    size_t count = reader.Count("block arguments");
    for (size_t i = 0; i < count; ++i) {
      bool has_location = true;
      if (version_ >= kElidedLocations) {
        size_t start = reader.offset();
        uint64_t coded = reader.Varint();
        has_location = (coded & 1) != 0;
        if (coded >> 1 >= program_.types.size()) FailAt(start, "a type is out of range");
        region.argument_types.push_back(static_cast<TypeId>(coded >> 1));
      } else {
        region.argument_types.push_back(TypeIndex(reader));
      }
      region.argument_locations.push_back(has_location ? AttributeIndex(reader) : kNone);
    }
    if (version_ >= kUseListOrders && reader.Byte() != 0) SkipUseListOrders(reader, count);
    return count;
  }

  // Orders of use lists matter to nobody here.
  void SkipUseListOrders(ByteReader& reader, size_t values) {
    size_t count = values > 1 ? reader.Count("use-list orders") : 1;
    for (size_t i = 0; i < count; ++i) {
      if (values > 1) reader.Varint();
      uint64_t indices = reader.Varint() >> 1;
      if (indices > reader.remaining()) reader.Fail("more indices than bytes");
      for (uint64_t k = 0; k < indices; ++k) reader.Varint();
    }
  }

  static void CollectCaptures(const Operation& operation, uint64_t first,
                              std::vector<ValueId>& captures) {
    for (ValueId value : operation.operands) {
      if (value < first) captures.push_back(value);
    }
    if (operation.isolated) return;
    for (const Region& region : operation.regions) {
      for (ValueId value : region.captures) {
        if (value < first) captures.push_back(value);
      }
    }
  }

  // `next` numbers its first result; its regions' values are numbered from `region_first`.
  void ParseOperation(ByteReader& reader, Operation& operation, uint64_t next,
                      uint64_t region_first, int depth) {
    operation.offset = reader.offset();
    operation.name = reader.Index(program_.operation_names.size(), "operation name");
    uint8_t mask = reader.Byte();
    if ((mask & ~kAllMasks) != 0) reader.Fail("an operation with unknown parts");
    operation.location = AttributeIndex(reader);
    if ((mask & kHasAttributes) != 0) ParseDictionary(reader, operation);
    if ((mask & kHasProperties) != 0)
      ParseOperationProperties(reader, operations_[operation.name], operation);
    operation.first_result = static_cast<ValueId>(next);
    if ((mask & kHasResults) != 0) {
      size_t count = reader.Count("results");
      operation.result_types.reserve(count);
      for (size_t i = 0; i < count; ++i) operation.result_types.push_back(TypeIndex(reader));
    }
    if ((mask & kHasOperands) != 0) {
      size_t count = reader.Count("operands");
      operation.operands.reserve(count);
      for (size_t i = 0; i < count; ++i) {
        operation.operands.push_back(reader.Index(kNone, "value"));
      }
    }
    if ((mask & kHasSuccessors) != 0) {
      reader.Fail("a branch between blocks, which StableHLO does not have");
    }
    if ((mask & kHasUseListOrders) != 0) {
      SkipUseListOrders(reader, operation.result_types.size());
    }
    if ((mask & kHasRegions) != 0) ParseRegions(reader, operation, region_first, depth);
  }

  void ParseDictionary(ByteReader& reader, Operation& operation) {
    operation.dictionary = AttributeIndex(reader);
    const Attribute& dictionary = program_.attributes[operation.dictionary];
    if (dictionary.kind == AttributeKind::kBuiltinDictionary &&
        dictionary.parts.size() > 2 * kMaxDictionary) {
      reader.Fail("an operation with " + std::to_string(dictionary.parts.size() / 2) +
                  " attributes");
    }
  }

  void ParseOperationProperties(ByteReader& reader, const OperationSpec* spec,
                                Operation& operation) {
    ByteReader properties = properties_.empty()
                                ? ByteReader({}, reader.offset())
                                : properties_[reader.Index(properties_.size(), "properties")];
    if (properties_.empty()) reader.Fail("there are no properties");
    if (program_.operation_names[operation.name] == kModule) {
      ParseModuleProperties(properties, operation);
    }
    if (!spec) return;
    operation.properties.reserve(spec->attributes.size());
    for (std::string_view name : spec->attributes) {
      operation.properties.push_back({name, AttributeIndex(properties)});
    }
    properties.ExpectEnd("an operation's properties");
  }

  // Each may be absent: the lowest bit says whether the number of an attribute is above it.
  void ParseModuleProperties(ByteReader& properties, Operation& operation) {
    for (std::string_view name : {"sym_name", "sym_visibility"}) {
      uint32_t coded = properties.Index(program_.attributes.size() * 2, "attribute");
      if ((coded & 1) != 0) operation.properties.push_back({name, coded >> 1});
    }
  }

  void ParseRegions(ByteReader& reader, Operation& operation, uint64_t region_first, int depth) {
    if (depth >= kMaxRegionDepth) reader.Fail("regions are nested too deep");
    uint64_t coded = reader.Varint();
    if (coded >> 1 > reader.remaining()) reader.Fail("more regions than bytes");
    operation.isolated = (coded & 1) != 0;
    if (!operation.isolated || version_ < kLazyRegions) {
      return ParseEachRegion(reader, operation, coded >> 1, operation.isolated ? 0 : region_first,
                             depth);
    }
    size_t start = reader.offset();
    Section section = ParseSection(reader);
    if (section.id != kIrSection) FailAt(start, "isolated regions are not an IR section");
    ParseEachRegion(section.payload, operation, coded >> 1, 0, depth);
    section.payload.ExpectEnd("isolated regions");
  }

  void ParseEachRegion(ByteReader& reader, Operation& operation, uint64_t count,
                       uint64_t region_first, int depth) {
    for (uint64_t i = 0; i < count; ++i) {
      ParseRegion(reader, operation.regions.emplace_back(), region_first, depth + 1);
    }
  }

  void ParseRegion(ByteReader& reader, Region& region, uint64_t first, int depth) {
    size_t start = reader.offset();
    uint64_t blocks = reader.Varint();
    if (blocks == 0) return;
    if (blocks != 1) FailAt(start, "a region of several blocks, which StableHLO does not have");
    size_t values = reader.Count("values");
    if (first + values >= kNone) FailAt(start, "too many values");
    uint64_t defined = ParseBlock(reader, region, first, values, depth);
    if (defined != values) {
      FailAt(start, "a region states " + std::to_string(values) + " values and defines " +
                        std::to_string(defined));
    }
  }

  ByteReader file_;
  uint64_t version_ = 0;
  std::array<std::optional<ByteReader>, kSectionCount> sections_;
  std::vector<std::string_view> strings_;
  std::vector<std::string_view> dialects_;
  std::vector<const OperationSpec*> operations_;
  std::vector<ByteReader> properties_;
  Program program_;
};

// Strings are numbered as they are first asked for.
class StringTable {
 public:
  uint32_t Index(std::string_view text) {
    auto [found, inserted] = numbers_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
    if (inserted) strings_.push_back(text);
    return found->second;
  }

  std::string Section() const {
    ByteWriter out;
    out.Varint(strings_.size());
    for (size_t i = strings_.size(); i-- > 0;) out.Varint(strings_[i].size() + 1);
    for (std::string_view text : strings_) {
      out.Bytes(text);
      out.Byte(0);
    }
    return out.Take();
  }

 private:
  std::unordered_map<std::string_view, uint32_t> numbers_;
  std::vector<std::string_view> strings_;
};

void WriteSection(ByteWriter& out, SectionId id, std::string_view payload) {
  out.Byte(id);
  out.Varint(payload.size());
  out.Bytes(payload);
}

class Writer {
 public:
  explicit Writer(const Program& program) : program_(program) { NumberAttributes(); }

  std::string Write() {
    std::string dialects = DialectSection();
    WriteEntries();
    ByteWriter ir;
    WriteBlock(ir, program_.top);
    ByteWriter out;
    out.Bytes(kMagic);
    out.Varint(kWrittenVersion);
    out.Bytes(program_.producer);
    out.Byte(0);
    WriteSection(out, kDialectSection, dialects);
    WriteSection(out, kOffsetSection, offsets_.bytes());
    WriteSection(out, kAttributeSection, data_.bytes());
    WriteSection(out, kIrSection, ir.bytes());
    WriteSection(out, kStringSection, strings_.Section());
    WriteSection(out, kPropertySection, PropertySection());
    return out.Take();
  }

 private:
  static constexpr uint64_t kBuiltin = 0, kVhlo = 1;  // the order in which dialects are listed

  // The file groups attributes by dialect.
  void NumberAttributes() {
    size_t count = program_.attributes.size();
    file_attribute_.resize(count);
    for (bool builtin : {true, false}) {
      for (AttributeId i = 0; i < count; ++i) {
        if (IsBuiltin(program_.attributes[i].kind) != builtin) continue;
        file_attribute_[i] = static_cast<AttributeId>(attribute_order_.size());
        attribute_order_.push_back(i);
      }
      if (builtin) builtin_count_ = attribute_order_.size();
    }
  }

  std::string DialectSection() {
    ByteWriter out;
    out.Varint(2);
    out.Varint(uint64_t{strings_.Index("builtin")} << 1);
    out.Varint(uint64_t{strings_.Index("vhlo")} << 1);
    const auto& names = program_.operation_names;
    out.Varint(names.size());
    for (size_t i = 0; i < names.size();) {  // runs of one dialect
      std::string_view dialect = names[i].substr(0, names[i].find('.'));
      size_t end = i;
      while (end < names.size() && names[end].substr(0, names[end].find('.')) == dialect) ++end;
      out.Varint(dialect == "builtin" ? kBuiltin : kVhlo);
      out.Varint(end - i);
      for (; i < end; ++i) {
        out.Varint(uint64_t{strings_.Index(names[i].substr(dialect.size() + 1))} << 1 | 1);
      }
    }
    return out.Take();
  }

  void WriteEntries() {
    Numbering numbering{[this](std::string_view text) { return strings_.Index(text); },
                        file_attribute_};
    offsets_.Varint(program_.attributes.size());
    offsets_.Varint(program_.types.size());
    std::span<const AttributeId> order = attribute_order_;
    auto write = [&](AttributeId id) {
      WriteAttribute(data_, program_.attributes[id], program_, numbering);
    };
    WriteGroup(kBuiltin, order.first(builtin_count_), write);
    WriteGroup(kVhlo, order.subspan(builtin_count_), write);
    std::span<const Type> types = program_.types;
    while (!types.empty()) {  // runs of one dialect
      auto other = [&](const Type& type) { return type.builtin != types[0].builtin; };
      auto run = static_cast<size_t>(std::ranges::find_if(types, other) - types.begin());
      WriteGroup(types[0].builtin ? kBuiltin : kVhlo, types.first(run),
                 [&](const Type& type) { WriteType(data_, type); });
      types = types.subspan(run);
    }
  }

  template <typename T, typename F>
  void WriteGroup(uint64_t dialect, std::span<const T> entries, F&& write) {
    if (entries.empty()) return;
    offsets_.Varint(dialect);
    offsets_.Varint(entries.size());
    for (const T& entry : entries) {
      size_t start = data_.bytes().size();
      write(entry);
      offsets_.Varint(static_cast<uint64_t>(data_.bytes().size() - start) << 1 | 1);
    }
  }

  void WriteBlock(ByteWriter& out, const Region& region) {
    bool has_arguments = !region.argument_types.empty();
    out.Varint(uint64_t{region.operations.size()} << 1 | (has_arguments ? 1 : 0));
    if (has_arguments) {
      out.Varint(region.argument_types.size());
      for (TypeId type : region.argument_types) out.Varint(uint64_t{type} << 1);
      out.Byte(0);  // no use-list orders
    }
    for (const Operation& operation : region.operations) WriteOperation(out, operation);
  }

  void WriteOperation(ByteWriter& out, const Operation& operation) {
    bool has_properties = HasProperties(operation);
    out.Varint(operation.name);
    out.Byte(static_cast<uint8_t>((operation.dictionary != kNone ? kHasAttributes : 0) |
                                  (has_properties ? kHasProperties : 0) |
                                  (operation.result_types.empty() ? 0 : kHasResults) |
                                  (operation.operands.empty() ? 0 : kHasOperands) |
                                  (operation.regions.empty() ? 0 : kHasRegions)));
    out.Varint(file_attribute_[operation.location]);
    if (operation.dictionary != kNone) out.Varint(file_attribute_[operation.dictionary]);
    if (has_properties) out.Varint(PropertiesIndex(operation));
    if (!operation.result_types.empty()) out.Indices(operation.result_types);
    if (!operation.operands.empty()) out.Indices(operation.operands);
    if (!operation.regions.empty()) WriteRegions(out, operation);
  }

  bool HasProperties(const Operation& operation) const {
    return !operation.properties.empty() || program_.operation_names[operation.name] == kModule;
  }

  uint32_t PropertiesIndex(const Operation& operation) {
    ByteWriter bytes;
    bool is_module = program_.operation_names[operation.name] == kModule;
    for (const NamedAttribute& property : operation.properties) {
      uint64_t number = file_attribute_[property.value];
      bytes.Varint(is_module ? number << 1 | 1 : number);
    }
    // A module may have a name and a visibility; absent ones are 0.
    for (size_t i = operation.properties.size(); is_module && i < 2; ++i) bytes.Varint(0);
    auto [found, inserted] =
        property_numbers_.try_emplace(bytes.Take(), static_cast<uint32_t>(properties_.size()));
    if (inserted) properties_.push_back(&found->first);
    return found->second;
  }

  std::string PropertySection() const {
    ByteWriter out;
    out.Varint(properties_.size());
    for (const std::string* bytes : properties_) {
      out.Varint(bytes->size());
      out.Bytes(*bytes);
    }
    return out.Take();
  }

  void WriteRegions(ByteWriter& out, const Operation& operation) {
    out.Varint(uint64_t{operation.regions.size()} << 1 | (operation.isolated ? 1 : 0));
    ByteWriter section;
    for (const Region& region : operation.regions) {
      WriteRegion(operation.isolated ? section : out, region);
    }
    if (operation.isolated) WriteSection(out, kIrSection, section.bytes());
  }

  void WriteRegion(ByteWriter& out, const Region& region) {
    uint64_t values = region.argument_types.size();
    for (const Operation& operation : region.operations) values += operation.result_types.size();
    out.Varint(1);
    out.Varint(values);
    WriteBlock(out, region);
  }

  const Program& program_;
  StringTable strings_;
  std::vector<AttributeId> file_attribute_;   // by program's number
  std::vector<AttributeId> attribute_order_;  // by the file's
  size_t builtin_count_ = 0;
  ByteWriter offsets_, data_;
  std::unordered_map<std::string, uint32_t> property_numbers_;
  std::vector<const std::string*> properties_;
};

}  // namespace

Program ParseContainer(std::span<const std::byte> bytes) { return Parser(bytes).Parse(); }

std::string WriteContainer(const Program& program) { return Writer(program).Write(); }

}  // namespace hlo::bytecode
