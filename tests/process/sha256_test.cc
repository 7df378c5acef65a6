#include "process/sha256.h"

#include <gtest/gtest.h>

namespace process {
namespace {

// The examples of FIPS 180-4's publisher, and lengths around the block's.
TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(ToHex(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(Sha256Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(ToHex(Sha256Of(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PartsGiveTheWholesDigest) {
  for (size_t size : {1, 54, 55, 56, 63, 64, 65, 127, 128, 200}) {
    std::string text;
    for (size_t i = 0; i < size; ++i) text += static_cast<char>(i * 7);
    for (size_t cut = 0; cut <= size; ++cut) {
      Sha256 hash;
      hash.Update(text.substr(0, cut));
      hash.Update(text.substr(cut));
      ASSERT_EQ(hash.Finish(), Sha256Of(text)) << size << " cut at " << cut;
    }
  }
}

TEST(Sha256Test, PartsAreNotTheirConcatenation) {
  EXPECT_EQ(Sha256OfParts({"abc", ""}), Sha256OfParts({"abc", ""}));
  EXPECT_NE(Sha256OfParts({"abc", ""}), Sha256OfParts({"abc"}));
  EXPECT_NE(Sha256OfParts({"a", "bc"}), Sha256OfParts({"ab", "c"}));
  EXPECT_NE(Sha256OfParts({"1:a"}), Sha256OfParts({"", "a"}));
}

TEST(Sha256Test, First64BitsAreTheFirstDigits) {
  EXPECT_EQ(First64Bits(Sha256Of("abc")), 0xba7816bf8f01cfeau);
}

}  // namespace
}  // namespace process
