// A message on its way over a connection: a header that says to which collective it belongs, and
// data, which goes from and to its place in memory without a copy where that is contiguous.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpu/collective/flat_array.h"
#include "cpu/collective/link.h"

namespace cpu {

struct MessageHeader {
  uint64_t signature;
  uint64_t collective;  // its number with the sender
  int64_t bytes;        // of data
  char description[488];

  void set_description(const std::string& text);
  std::string DescriptionText() const;
};

class Message {
 public:
  enum class Progress { kNothing, kSome, kDone, kBroken };

  // The data is [begin, end) of `array`, whose memory must stay.
  Message(const MessageHeader& header, FlatArray array, int64_t begin, int64_t end)
      : header_(header), array_(std::move(array)), begin_(begin), end_(end) {}

  const MessageHeader& header() const { return header_; }
  bool HasHeader() const { return moved_ >= kHeaderBytes; }

  // Sends what can be sent without waiting.
  Progress Send(Link& link);
  // Receives likewise. `accept(header, bytes)` is called once the header is here, with the number
  // of bytes that are expected, and may throw.
  template <typename Accept>
  Progress Receive(Link& link, const Accept& accept) {
    const bool had_header = HasHeader();
    const Progress progress = ReceiveSome(link);
    if (!had_header && HasHeader()) accept(header_, end_ - begin_);
    return progress;
  }

 private:
  static constexpr int64_t kHeaderBytes = sizeof(MessageHeader);

  int64_t total() const { return kHeaderBytes + end_ - begin_; }
  Progress ReceiveSome(Link& link);
  // The rest of the header and the next contiguous data.
  int Pieces(iovec* pieces, bool fill);
  void FindWindow(bool fill);
  void CloseWindow();

  MessageHeader header_;
  FlatArray array_;
  int64_t begin_, end_;
  int64_t moved_ = 0;  // header and data
  // The data that is under way, in place or gathered from many small runs: its memory, and its
  // place in the sequence.
  std::byte* window_ = nullptr;
  int64_t window_begin_ = 0, window_end_ = 0;
  std::vector<std::byte> gathered_;
};

}  // namespace cpu
