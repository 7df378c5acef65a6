#include "hlo/hlo_json_writer.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <unordered_map>
#include <vector>

#include "hlo/hlo_text_writer.h"

namespace hlo {
namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// The items, each as `json` has it, in brackets.
template <typename Items, typename F>
std::string Array(const Items& items, F json) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + json(item);
  return "[" + out + "]";
}

// A proto's 64-bit integers are strings in JSON.
std::string Int64(int64_t number) { return Quoted(std::to_string(number)); }

std::string ShapeJson(const Shape& shape) {
  if (shape.is_tuple()) {
    return "{\"elementType\": \"TUPLE\", \"tupleShapes\": " +
           Array(shape.tuple_shapes(), ShapeJson) + "}";
  }
  std::string type(ShortName(shape.element_type()));
  std::transform(type.begin(), type.end(), type.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return "{\"elementType\": " + Quoted(type) +
         ", \"dimensions\": " + Array(shape.dimensions(), Int64) + "}";
}

Shape ResultShape(const Computation& computation) {
  std::vector<Shape> shapes;
  for (const Instruction* result : computation.results()) shapes.push_back(result->shape());
  return Shape::Tuple(std::move(shapes));
}

std::string ProgramShapeJson(const Computation& computation) {
  const auto shape = [](const Instruction* value) { return ShapeJson(value->shape()); };
  return "{\"parameters\": " + Array(computation.parameters(), shape) +
         ", \"result\": " + ShapeJson(ResultShape(computation)) + "}";
}

// The lines that instructions come from, with those that called them, each once: tables that refer
// to each other by number, from 1 on.
class FrameTables {
 public:
  // Of the frame, and of those that called it; 0 for none.
  int64_t NumberOf(const SourceFrame* frame) {
    if (frame == nullptr) return 0;
    if (auto found = frames_.find(frame); found != frames_.end()) return found->second;
    const int64_t caller = NumberOf(frame->caller);
    const int64_t location = Add(
        locations_,
        "{\"fileNameId\": " + std::to_string(Add(files_, Quoted(frame->file))) +
            ", \"functionNameId\": " + std::to_string(Add(functions_, Quoted(frame->function))) +
            ", \"line\": " + std::to_string(frame->line) + "}");
    std::string text = "{\"fileLocationId\": " + std::to_string(location);
    if (caller != 0) text += ", \"parentFrameId\": " + std::to_string(caller);
    written_frames_.push_back(text + "}");
    return frames_[frame] = static_cast<int64_t>(written_frames_.size());
  }

  // Empty if there are no frames.
  std::string Json() const {
    if (written_frames_.empty()) return "";
    const auto as_is = [](const std::string& text) { return text; };
    return "{\"fileNames\": " + Array(files_.written, as_is) +
           ", \"functionNames\": " + Array(functions_.written, as_is) +
           ", \"fileLocations\": " + Array(locations_.written, as_is) +
           ", \"stackFrames\": " + Array(written_frames_, as_is) + "}";
  }

 private:
  struct Table {
    std::unordered_map<std::string, int64_t> number_of;
    std::vector<std::string> written;
  };
  static int64_t Add(Table& table, const std::string& text) {
    int64_t& number = table.number_of[text];
    if (number == 0) {
      table.written.push_back(text);
      number = static_cast<int64_t>(table.written.size());
    }
    return number;
  }

  Table files_, functions_, locations_;
  std::unordered_map<const SourceFrame*, int64_t> frames_;
  std::vector<std::string> written_frames_;
};

std::string MetadataJson(const Metadata& metadata, FrameTables& frames) {
  std::string out = "\"opType\": " + Quoted(HloOperationName(metadata.operation()));
  out += ", \"opName\": " + Quoted(HloOperationName(metadata.op_name));
  if (!metadata.source_file.empty()) {
    out += ", \"sourceFile\": " + Quoted(metadata.source_file);
    out += ", \"sourceLine\": " + std::to_string(metadata.source_line);
  }
  if (const int64_t frame = frames.NumberOf(metadata.frame); frame != 0) {
    out += ", \"stackFrameId\": " + std::to_string(frame);
  }
  return "{" + out + "}";
}

class JsonWriter {
 public:
  explicit JsonWriter(const Module& module) : module_(module) {
    for (const auto& computation : module.computations()) {
      const auto id = static_cast<int64_t>(id_of_.size()) + 1;
      id_of_.emplace(computation.get(), id);
      for (const auto& instruction : computation->instructions()) {
        next_ = std::max(next_, instruction->id() + 1);
      }
    }
  }

  std::string Write() {
    const Computation& entry = *module_.entry();
    std::string out = "{\"name\": " + Quoted(module_.name()) +
                      ", \"entryComputationName\": " + Quoted(entry.name()) +
                      ", \"entryComputationId\": " + Int64(id_of_.at(&entry)) +
                      ", \"hostProgramShape\": " + ProgramShapeJson(entry) +
                      ", \"computations\": " +
                      Array(module_.computations(), [this](const auto& c) { return Json(*c); });
    if (const std::string frames = frames_.Json(); !frames.empty()) {
      out += ", \"stackFrameIndex\": " + frames;
    }
    return out + "}";
  }

 private:
  std::string Json(const Computation& computation) {
    std::vector<std::string> instructions;
    for (const auto& instruction : computation.instructions()) {
      instructions.push_back(Json(*instruction));
    }
    int64_t root = computation.results().size() == 1 ? computation.result()->id() : next_;
    if (&computation == module_.entry() || computation.results().size() != 1) {
      root = next_++;
      instructions.push_back(Named("tuple", root, ResultShape(computation), computation.results()) +
                             "}");
    }
    return "{\"name\": " + Quoted(computation.name()) +
           ", \"id\": " + Int64(id_of_.at(&computation)) +
           ", \"programShape\": " + ProgramShapeJson(computation) + ", \"rootId\": " + Int64(root) +
           ", \"instructions\": " +
           Array(instructions, [](const std::string& text) { return text; }) + "}";
  }

  // Without the brace that closes it.
  static std::string Named(const std::string& opcode, int64_t id, const Shape& shape,
                           const std::vector<Instruction*>& operands) {
    const auto operand_id = [](const Instruction* operand) { return Int64(operand->id()); };
    std::string out = "{\"name\": " + Quoted(opcode + "." + std::to_string(id)) +
                      ", \"opcode\": " + Quoted(opcode) + ", \"id\": " + Int64(id) +
                      ", \"shape\": " + ShapeJson(shape);
    if (!operands.empty()) out += ", \"operandIds\": " + Array(operands, operand_id);
    return out;
  }

  std::string Json(const Instruction& instruction) {
    std::string out = Named(HloOpcodeName(instruction.opcode()), instruction.id(),
                            instruction.shape(), instruction.operands());
    if (instruction.opcode() == Opcode::kParameter) {
      out += ", \"parameterNumber\": " + Int64(instruction.parameter_number());
    }
    if (!instruction.called_computations().empty()) {
      out += ", \"calledComputationIds\": " +
             Array(instruction.called_computations(),
                   [this](const Computation* called) { return Int64(id_of_.at(called)); });
    }
    if (!instruction.metadata().op_name.empty()) {
      out += ", \"metadata\": " + MetadataJson(instruction.metadata(), frames_);
    }
    return out + "}";
  }

  const Module& module_;
  std::unordered_map<const Computation*, int64_t> id_of_;
  int64_t next_ = 1;
  FrameTables frames_;
};

}  // namespace

std::string WriteHloJson(const Module& module) { return JsonWriter(module).Write(); }

}  // namespace hlo
