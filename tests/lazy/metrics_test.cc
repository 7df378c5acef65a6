#include "lazy/metrics.h"

#include <gtest/gtest.h>

namespace lazy {
namespace {

TEST(MetricsTest, TimesAreWrittenFromTheFirstNonzeroPart) {
  EXPECT_EQ(FormatMetric(MetricUnit::kNanoseconds, 49053632), "049ms053.632us");
  EXPECT_EQ(FormatMetric(MetricUnit::kNanoseconds, 4125913135), "04s125ms913.135us");
  EXPECT_EQ(FormatMetric(MetricUnit::kNanoseconds, 1500), "001.500us");
}

TEST(MetricsTest, BytesAndNumbers) {
  EXPECT_EQ(FormatMetric(MetricUnit::kBytes, 12288), "12.00KB");
  EXPECT_EQ(FormatMetric(MetricUnit::kNumber, 3), "3.00");
}

TEST(MetricsTest, ReportListsWhatHasCounted) {
  ClearCounters();
  ClearMetrics();
  Count(Counter("TestUnused"), 0);
  Count(Counter("TestCounter"), 2);
  Metric::Get("TestMetric", MetricUnit::kBytes)->AddSample(2048);
  EXPECT_EQ(MetricsReport(),
            "Metric: TestMetric\n  TotalSamples: 1\n  Accumulator: 2.00KB\n  Percentiles: "
            "1%=2.00KB; 5%=2.00KB; 10%=2.00KB; 20%=2.00KB; 50%=2.00KB; 80%=2.00KB; 90%=2.00KB; "
            "95%=2.00KB; 99%=2.00KB\nCounter: TestCounter\n  Value: 2\n");
}

TEST(MetricsTest, SelectedNamesMayEndInAStar) {
  ClearCounters();
  Count(Counter("aten::one"));
  Count(Counter("aten::two"));
  Count(Counter("xla::one"));
  std::string report = MetricsReport({"aten::*"}, {});
  EXPECT_NE(report.find("aten::one"), report.npos);
  EXPECT_NE(report.find("aten::two"), report.npos);
  EXPECT_EQ(report.find("xla::one"), report.npos);
}

TEST(MetricsTest, OnlyTheLatestSamplesAreKept) {
  Metric* metric = Metric::Get("TestRing", MetricUnit::kNumber);
  for (int i = 0; i < 2000; ++i) metric->AddSample(i);
  Metric::Data data = metric->data();
  EXPECT_EQ(data.total_samples, 2000);
  ASSERT_EQ(data.samples.size(), 1024u);
  EXPECT_EQ(data.samples.front().second, 976);
  EXPECT_EQ(data.samples.back().second, 1999);
}

}  // namespace
}  // namespace lazy
