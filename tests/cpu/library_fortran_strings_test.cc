// What LAPACK joins are letters such as SIDE // TRANS; Fortran's rules hold for all lengths.
#include <gtest/gtest.h>

#include <string>

extern "C" void _gfortran_concat_string(std::size_t length, char* result, std::size_t first_length,
                                        const char* first, std::size_t second_length,
                                        const char* second);

namespace {

std::string Concatenate(std::size_t length, const std::string& first, const std::string& second) {
  std::string result(length, '?');
  _gfortran_concat_string(length, result.data(), first.size(), first.data(), second.size(),
                          second.data());
  return result;
}

TEST(FortranStrings, AreJoinedCutAndPadded) {
  EXPECT_EQ(Concatenate(2, "L", "T"), "LT");
  EXPECT_EQ(Concatenate(5, "ab", "c"), "abc  ");
  EXPECT_EQ(Concatenate(3, "ab", "cd"), "abc");
  EXPECT_EQ(Concatenate(1, "ab", "cd"), "a");
  EXPECT_EQ(Concatenate(2, "", ""), "  ");
  EXPECT_EQ(Concatenate(0, "a", "b"), "");
}

}  // namespace
