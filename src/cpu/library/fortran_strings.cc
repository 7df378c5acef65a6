// The one function of gfortran's run-time library that LAPACK in OpenBLAS calls: `first // second`,
// when it looks block sizes up by an option's letters. With it here the plugin needs neither
// libgfortran nor libquadmath, which machines without a compiler lack. Source: gfortran's calling
// convention since GCC 8, in which lengths are of type size_t.
#include <algorithm>
#include <cstddef>

// Fortran's assignment: what is too long is cut, what is too short is padded with blanks.
extern "C" void _gfortran_concat_string(std::size_t length, char* result, std::size_t first_length,
                                        const char* first, std::size_t second_length,
                                        const char* second) {
  first_length = std::min(first_length, length);
  second_length = std::min(second_length, length - first_length);
  result = std::copy_n(first, first_length, result);
  result = std::copy_n(second, second_length, result);
  std::fill_n(result, length - first_length - second_length, ' ');
}
