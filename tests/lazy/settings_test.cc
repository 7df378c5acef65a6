#include "lazy/settings.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

namespace lazy {
namespace {

uint64_t NumberOf(CompileOverrides options) {
  SetCustomCompileOptions(std::move(options));
  const uint64_t number = CustomCompileOptionsNumber();
  SetCustomCompileOptions({});
  return number;
}

// A program is found by it, so different options never have the same, whatever is in them.
TEST(SettingsTest, DifferentCompileOptionsHaveDifferentNumbers) {
  // Eight bytes that make the fast hashes of hlo/hash.h forget what came before them.
  const std::string forget = "\xb9\xe5\xe4\x1c\x6d\x47\x58\xbf";
  const std::vector<CompileOverrides> options = {
      {},
      {{"a", int64_t{1}}},
      {{"a", 1.0}},
      {{"a", true}},
      {{"a", "1"}},
      {{"a", std::numeric_limits<double>::quiet_NaN()}},
      {{"a", 0.0}},
      {{"a", -0.0}},
      {{"b", int64_t{1}}},
      {{"a", int64_t{1}}, {"b", int64_t{1}}},
      {{"argument" + forget, true}},
      {{"variable" + forget, true}},
  };
  std::set<uint64_t> numbers;
  for (const CompileOverrides& one : options) {
    const uint64_t number = NumberOf(one);
    EXPECT_TRUE(numbers.insert(number).second) << number;
    EXPECT_EQ(NumberOf(one), number);
  }
  EXPECT_EQ(NumberOf({}), 0u);
}

}  // namespace
}  // namespace lazy
