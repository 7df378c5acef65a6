// TLS 1.3 between ranks that know their job's secret, each of which proves so to the other: a
// pre-shared key that is derived from the secret, with an exchange of new keys for each connection,
// so that what was recorded stays secret when the job's secret does not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace cpu {

// What all connections of a rank have alike.
class Tls {
 public:
  using Key = std::array<unsigned char, 32>;

  // The ciphers that both may use, as OpenSSL lists them: the one that is faster here comes first,
  // as was measured once. (AES-GCM takes instructions that not every processor, and not every
  // version of the library, has in their fastest form; ChaCha20 takes wide vectors.)
  static const std::string& FastestFirst();

  // `name` is what this rank calls itself where it connects; others see it, and believe it only
  // when the connection stands. Of the `ciphers` the first is taken by whoever connects. Throws
  // hlo::Error(kInternal) if the library fails.
  Tls(const std::string& secret, const std::string& name,
      const std::string& ciphers = FastestFirst());

  const Key& key() const { return key_; }
  const std::string& name() const { return name_; }
  SSL_CTX* context() const { return context_.get(); }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const;
  };

  Key key_{};
  std::string name_;
  std::unique_ptr<SSL_CTX, Free> context_;
};

// One connection over a non-blocking socket, which stays its owner's.
class TlsStream {
 public:
  enum class Side { kConnects, kAccepts };
  enum class Progress { kDone, kMustRead, kMustWrite, kEnded, kRefused };

  // `tls` must stay until the handshake is done. A key of the connection is used for about
  // `bytes_per_key`, and then the next one.
  TlsStream(const Tls& tls, Side side, int file, int64_t bytes_per_key = int64_t{64} << 30);
  TlsStream(const TlsStream&) = delete;

  // kRefused: one of both does not know the secret.
  Progress Handshake();
  // What the one that connects calls itself; unproven until the handshake is done.
  const std::string& claimed_name() const { return claimed_name_; }
  std::string cipher() const;
  // After the handshake. Bytes moved, 0 if it must wait, -1 if the connection has ended. What could
  // not be sent must be sent again, in whatever memory it then lies. Many records are encrypted and
  // handed to the system at once, since each call of it costs as much as encrypting several.
  int64_t Write(const void* data, size_t bytes);
  int64_t Read(void* data, size_t bytes);
  // What has come may be taken from the socket before it is asked for. (Not if the socket is to be
  // used without this stream later.)
  void ReadAhead();

  // The library's callbacks.
  const Tls* tls() const { return tls_; }  // null after the handshake
  void set_claimed_name(std::string name) { claimed_name_ = std::move(name); }
  int file() const { return file_; }
  // False if there is no room.
  bool Keep(const char* record, size_t bytes);
  // Sends what was kept: 1 if all is gone, 0 if it must wait, -1 if the connection has ended.
  int Flush();

 private:
  struct Free {
    void operator()(SSL* ssl) const;
  };

  int64_t Encrypt(const void* data, size_t bytes);

  const Tls* tls_;
  Side side_;
  int file_;
  int64_t bytes_per_key_, written_ = 0;
  std::string claimed_name_;
  // Records that are to be sent, how much of them has been, and the size of the data in them.
  std::vector<char> records_;
  size_t sent_ = 0;
  int64_t data_in_records_ = 0;
  std::unique_ptr<SSL, Free> ssl_;
};

}  // namespace cpu
