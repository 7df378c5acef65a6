// Memory that a server and a client on the same host share.
//
// It has no name that could be left behind: an anonymous file of the server, which the client opens
// through /proc, as the kernel allows processes of the same user only. Its size is sealed, so that
// neither side can make the other one fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace remote {

class Segment {
 public:
  // Its first page holds the nonce; what is shared begins behind it.
  static constexpr size_t kHeader = 4096;

  // The server's side. Throws hlo::Error(kResourceExhausted).
  static std::shared_ptr<Segment> Create(size_t bytes);
  // The client's; null if there is no such segment here: the server is on another host, in another
  // container, or belongs to another user.
  static std::shared_ptr<Segment> Open(uint64_t process, uint64_t descriptor,
                                       const std::string& nonce, bool writable = true);
  ~Segment();
  Segment(const Segment&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }  // with the header
  // Behind the header.
  bool Holds(size_t offset, size_t bytes) const {
    return offset >= kHeader && offset <= bytes_ && bytes <= bytes_ - offset;
  }
  int descriptor() const { return descriptor_; }
  const std::string& nonce() const { return nonce_; }

 private:
  Segment(int descriptor, char* data, size_t bytes, std::string nonce)
      : descriptor_(descriptor), data_(data), bytes_(bytes), nonce_(std::move(nonce)) {}
  int descriptor_;
  char* data_;
  size_t bytes_;
  std::string nonce_;
};

}  // namespace remote
