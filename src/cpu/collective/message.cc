#include "cpu/collective/message.h"

#include <algorithm>
#include <cstring>

namespace cpu {
namespace {

// Runs from this size on go as they are.
constexpr int64_t kLongRun = 16 << 10;
constexpr int64_t kGathered = 256 << 10;

}  // namespace

void MessageHeader::set_description(const std::string& text) {
  const size_t size = std::min(text.size(), sizeof description - 1);
  std::memcpy(description, text.data(), size);
  std::memset(description + size, 0, sizeof description - size);
}

std::string MessageHeader::DescriptionText() const {
  return std::string(description, strnlen(description, sizeof description));
}

void Message::FindWindow(bool fill) {
  const int64_t at = begin_ + std::max<int64_t>(0, moved_ - kHeaderBytes);
  if (window_ != nullptr && at < window_end_) return;
  if (at >= end_) return;
  const FlatArray::Run run = array_.RunAt(at);
  const int64_t left = end_ - at;
  window_begin_ = at;
  if (run.bytes >= std::min(left, kLongRun)) {
    window_ = run.data;
    window_end_ = at + std::min(left, run.bytes);
    return;
  }
  window_end_ = at + std::min(left, kGathered);
  gathered_.resize(kGathered);
  window_ = gathered_.data();
  if (fill) array_.CopyTo(window_, window_begin_, window_end_);
}

int Message::Pieces(iovec* pieces, bool fill) {
  int count = 0;
  if (!HasHeader()) {
    pieces[count++] = {reinterpret_cast<std::byte*>(&header_) + moved_,
                       static_cast<size_t>(kHeaderBytes - moved_)};
  }
  FindWindow(fill);
  if (begin_ < end_) {
    const int64_t at = begin_ + std::max<int64_t>(0, moved_ - kHeaderBytes);
    pieces[count++] = {window_ + (at - window_begin_), static_cast<size_t>(window_end_ - at)};
  }
  return count;
}

Message::Progress Message::Send(Link& link) {
  Progress progress = Progress::kNothing;
  while (moved_ < total()) {
    iovec pieces[2];
    const int count = Pieces(pieces, true);
    const int64_t sent = link.Send(pieces, count);
    if (sent == 0) return progress;
    if (sent < 0) return Progress::kBroken;
    moved_ += sent;
    progress = Progress::kSome;
  }
  return Progress::kDone;
}

Message::Progress Message::ReceiveSome(Link& link) {
  Progress progress = Progress::kNothing;
  while (moved_ < total()) {
    iovec pieces[2];
    const int count = Pieces(pieces, false);
    const bool had_header = HasHeader();
    const int64_t received = link.Receive(pieces, count);
    if (received == 0) return progress;
    if (received < 0) return Progress::kBroken;
    moved_ += received;
    progress = Progress::kSome;
    CloseWindow();
    if (!had_header && HasHeader() && moved_ < total()) return progress;  // to be accepted first
  }
  return Progress::kDone;
}

// Gathered data that is complete goes to its place.
void Message::CloseWindow() {
  const int64_t at = begin_ + std::max<int64_t>(0, moved_ - kHeaderBytes);
  if (window_ == nullptr || at < window_end_) return;
  if (window_ == gathered_.data()) {
    array_.CopyFrom(gathered_.data(), window_begin_, window_end_);
  }
  window_ = nullptr;
}

}  // namespace cpu
