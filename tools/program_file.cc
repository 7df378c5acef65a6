#include "program_file.h"

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string_view>

#include "hlo/error.h"
#include "hlo/text_reader.h"

namespace tools {
namespace {

std::string ReadFile(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) {
    throw hlo::Error(hlo::ErrorCode::kNotFound, path + ": the file cannot be read");
  }
  return bytes;
}

// What follows a key of the header, a Python dictionary: "(2, 3)" or "'<f4'".
std::string_view Entry(std::string_view header, std::string_view key, char open, char close) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const size_t begin = header.find(open, at + key.size());
  const size_t end = begin == std::string_view::npos ? begin : header.find(close, begin + 1);
  return end == std::string_view::npos ? std::string_view() : header.substr(begin, end + 1 - begin);
}

bool NumpyHas(hlo::ElementType type) {
  return hlo::BitWidth(type) >= 8 && type != hlo::ElementType::kBF16 &&
         (!hlo::IsFloat(type) || hlo::BitWidth(type) > 8);
}

// How numpy writes an element type; of those that it lacks only the size: "'<f4'", "'|V2'".
std::string DtypeText(hlo::ElementType type) {
  const size_t width = hlo::ByteWidth(type);
  const char kind = type == hlo::ElementType::kPred ? 'b'
                    : !NumpyHas(type)               ? 'V'
                    : hlo::IsFloat(type)            ? 'f'
                    : hlo::IsComplex(type)          ? 'c'
                    : hlo::IsSignedInteger(type)    ? 'i'
                                                    : 'u';
  const char order = width == 1 || kind == 'V' ? '|' : '<';
  return std::string("'") + order + kind + std::to_string(width) + "'";
}

// ml_dtypes writes "<V2" for its bfloat16.
bool IsDtype(std::string_view descr, hlo::ElementType type) {
  std::string wanted = DtypeText(type);
  if (descr == wanted) return true;
  wanted[1] = '<';
  return wanted[2] == 'V' && descr == wanted;
}

std::string ShapeText(const hlo::Shape& shape) {
  std::string text = "(";
  for (int64_t size : shape.dimensions()) text += std::to_string(size) + ", ";
  if (shape.rank() > 1) text.resize(text.size() - 2);
  if (shape.rank() == 1) text.pop_back();
  return text + ")";
}

}  // namespace

std::unique_ptr<hlo::Module> ReadProgram(const std::string& path) {
  const std::string bytes = ReadFile(path);
  try {
    return hlo::ReadStablehlo(std::as_bytes(std::span(bytes.data(), bytes.size())));
  } catch (const hlo::Error& error) {
    throw hlo::Error(error.code(), path + ": " + error.what());
  }
}

hlo::Literal ReadNumpyFile(const std::string& path, const hlo::Shape& shape) {
  const std::string bytes = ReadFile(path);
  const auto fail = [&](const std::string& what) { throw hlo::Error(path + ": " + what); };
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 12 || !bytes.starts_with(kMagic)) fail("this is not a file of numpy.save");
  // Version 1 has two bytes of length, later ones four.
  const bool is_old = bytes[6] == 1;
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, is_old ? 2 : 4);
  const size_t start = is_old ? 10 : 12;
  if (length > bytes.size() - start) fail("the file ends in its header");
  const std::string_view header(bytes.data() + start, length);
  if (header.find("'fortran_order': False") == std::string_view::npos) {
    fail("the array is not in C order");
  }
  const std::string_view sizes = Entry(header, "'shape':", '(', ')');
  if (sizes != ShapeText(shape)) {
    fail("the array's shape is " + std::string(sizes) + ", the parameter's " + ShapeText(shape));
  }
  const std::string_view descr = Entry(header, "'descr':", '\'', '\'');
  if (!IsDtype(descr, shape.element_type())) {
    fail("the array's elements are " + std::string(descr) + ", the parameter's " +
         std::string(hlo::Name(shape.element_type())) + " are " + DtypeText(shape.element_type()));
  }
  if (bytes.size() - start - length != static_cast<size_t>(shape.byte_size())) {
    fail("the array's data are " + std::to_string(bytes.size() - start - length) + " bytes, not " +
         std::to_string(shape.byte_size()));
  }
  return hlo::Literal(shape, bytes.data() + start + length);
}

}  // namespace tools
