#include "lazy/settings.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

namespace lazy {
namespace {

std::vector<uint64_t> KeyOf(CompileOverrides options) {
  SetCustomCompileOptions(std::move(options));
  const std::vector<uint64_t> key = CustomCompileOptionsKey();
  SetCustomCompileOptions({});
  return key;
}

// A program is found by it, so different options never have the same, whatever is in them.
TEST(SettingsTest, DifferentCompileOptionsHaveDifferentKeys) {
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
  std::set<std::vector<uint64_t>> keys;
  for (const CompileOverrides& one : options) {
    const std::vector<uint64_t> key = KeyOf(one);
    EXPECT_TRUE(keys.insert(key).second);
    EXPECT_EQ(KeyOf(one), key);
  }
  EXPECT_EQ(KeyOf({}), std::vector<uint64_t>{0});
}

}  // namespace
}  // namespace lazy
