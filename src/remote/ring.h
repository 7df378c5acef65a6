// Messages from one process to another through memory that they share. A small message costs a copy
// and, if the other side sleeps, waking it; through a socket it costs several times as much.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace remote {

// One end of a ring: the one process writes, the other reads, each by one thread at a time.
// Neither end believes what the other has written there.
class Ring {
 public:
  static constexpr size_t kCapacity = size_t{8} << 20;
  static constexpr size_t kAlignment = 4096;
  static constexpr size_t kBytes = kCapacity + kAlignment;  // of memory, with the header

  static void Clear(char* memory);  // see Rings

  explicit Ring(std::shared_ptr<char> memory);
  Ring(const Ring&) = delete;

  // Waits for room. False if this end is closed, the reader is not honest, or the message has more
  // than kCapacity / 2 bytes.
  bool Write(std::string_view message);
  // Waits for a message. False if this end is closed. Throws hlo::Error for what no honest writer
  // leaves, and for messages of more than `most` bytes.
  bool Read(std::string* message, size_t most);
  // Those who wait here wait no more. Thread-safe.
  void Close();

 private:
  // Positions count bytes, modulo 2^32; the flags say that somebody sleeps until one changes.
  struct Header {
    alignas(64) std::atomic<uint32_t> written;
    std::atomic<uint32_t> reader_sleeps;
    alignas(64) std::atomic<uint32_t> read;
    std::atomic<uint32_t> writer_sleeps;
  };
  static void SleepUntilChanged(std::atomic<uint32_t>& position, uint32_t from,
                                std::atomic<uint32_t>& sleeps);
  static void Move(std::atomic<uint32_t>& position, uint32_t to, std::atomic<uint32_t>& sleeps);
  void CopyIn(uint32_t position, const void* source, size_t bytes);
  void CopyOut(uint32_t position, void* target, size_t bytes) const;

  const std::shared_ptr<char> memory_;
  Header& header_;
  char* const data_;
  uint32_t position_ = 0;  // of this end
  std::atomic<bool> closed_{false};
};

// The two rings of a session, one after the other in one piece of memory; either side's ends.
struct Rings {
  static constexpr size_t kBytes = 2 * Ring::kBytes;

  // For memory that has been used before; once, before either side uses it.
  static void Clear(char* memory);

  explicit Rings(const std::shared_ptr<char>& memory);
  void Close();

  Ring requests, replies;
};

}  // namespace remote
