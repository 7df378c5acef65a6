#include "lazy/cut_reason.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace lazy {
namespace {

using Kind = CutReason::Kind;

TEST(CutReasonTest, OutermostCountsOnItsOwnThread) {
  EXPECT_EQ(CurrentCutReason().kind, Kind::kUnknown);
  {
    CutScope fallback(Kind::kFallback, "aten::histc");
    {
      CutScope read(Kind::kRead, "aten::_to_cpu");
      EXPECT_EQ(CurrentCutReason().kind, Kind::kFallback);
      EXPECT_EQ(CurrentCutReason().text, "aten::histc");
    }
    EXPECT_EQ(CurrentCutReason().text, "aten::histc");
    std::thread([] { EXPECT_EQ(CurrentCutReason().kind, Kind::kUnknown); }).join();
  }
  EXPECT_EQ(CurrentCutReason().kind, Kind::kUnknown);
}

TEST(CutReasonTest, WaitsAreTimedOnceAndSyncsAreNone) {
  std::vector<std::string> waits;
  SetWaitObserver([&](const CutReason& reason, double seconds) {
    EXPECT_GT(seconds, 0);
    waits.emplace_back(reason.text);
  });
  {
    CutScope read(Kind::kRead, "read");
    CutScope inner(Kind::kRead, "inner");
  }
  {
    CutScope sync(Kind::kCaller, "sync");
    CutScope inner(Kind::kRead, "inner");
  }
  SetWaitObserver(nullptr);
  {
    CutScope unobserved(Kind::kRead, "unobserved");
  }
  EXPECT_EQ(waits, std::vector<std::string>{"read"});
}

}  // namespace
}  // namespace lazy
