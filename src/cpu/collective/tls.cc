#include "cpu/collective/tls.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "hlo/error.h"
#include "process/fork.h"

namespace cpu {
namespace {

// Both with SHA-256, as the pre-shared key is.
constexpr char kAes[] = "TLS_AES_128_GCM_SHA256";
constexpr char kChaCha[] = "TLS_CHACHA20_POLY1305_SHA256";
constexpr unsigned char kCipherOfKey[] = {0x13, 0x01};
constexpr size_t kMostNameBytes = 64;
// What one record holds, and what is more than there is around it.
constexpr size_t kRecordContent = 16 << 10;
constexpr size_t kMostAroundRecord = 256;
constexpr size_t kHandshakeRoom = 32 << 10;
// What is encrypted, sent or received at a time: few calls of the system, and a core's cache holds
// it.
constexpr size_t kBatch = 128 << 10;
constexpr unsigned char kPurpose[] = "collectives";

[[noreturn]] void ThrowLibraryError(const std::string& what) {
  char text[256] = "no reason given";
  if (const unsigned long error = ERR_get_error(); error != 0) {
    ERR_error_string_n(error, text, sizeof text);
  }
  throw hlo::Error(hlo::ErrorCode::kInternal, "TLS for collectives: " + what + ": " + text);
}

// This copy of the library is the engine's own: it reads no configuration, and leaves nothing to be
// called at the process's end.
void StartLibrary() {
  static std::once_flag once;
  const process::NoFork starting;  // a child would wait for ever for a start that it lacks
  std::call_once(once, [] {
    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1 ||
        OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) {
      ThrowLibraryError("starting");
    }
  });
}

// The seconds that the cipher takes for some records, undisturbed.
double TimeCipher(const char* name) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<EVP_CIPHER, void (*)(EVP_CIPHER*)> cipher(
      EVP_CIPHER_fetch(nullptr, name, nullptr), EVP_CIPHER_free);
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> context(EVP_CIPHER_CTX_new(),
                                                                           EVP_CIPHER_CTX_free);
  const unsigned char key[32] = {}, nonce[12] = {};
  if (EVP_EncryptInit_ex2(context.get(), cipher.get(), key, nonce, nullptr) != 1) {
    ThrowLibraryError(std::string("measuring ") + name);
  }
  std::vector<unsigned char> record(kRecordContent), sealed(kRecordContent);
  std::chrono::duration<double> least = std::chrono::hours(1);
  for (int i = 0; i < 20; ++i) {
    const Clock::time_point begin = Clock::now();
    int bytes = 0;
    EVP_EncryptUpdate(context.get(), sealed.data(), &bytes, record.data(), kRecordContent);
    least = std::min<std::chrono::duration<double>>(least, Clock::now() - begin);
  }
  return least.count();
}

// HKDF with SHA-256 (RFC 5869).
Tls::Key DeriveKey(const std::string& secret) {
  std::unique_ptr<EVP_KDF, void (*)(EVP_KDF*)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                   EVP_KDF_free);
  std::unique_ptr<EVP_KDF_CTX, void (*)(EVP_KDF_CTX*)> context(EVP_KDF_CTX_new(kdf.get()),
                                                               EVP_KDF_CTX_free);
  std::string digest = "SHA256", purpose = "torch_xla collectives TLS 1.3 PSK", key = secret;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, purpose.data(), purpose.size()),
      OSSL_PARAM_construct_end()};
  Tls::Key derived;
  if (context == nullptr ||
      EVP_KDF_derive(context.get(), derived.data(), derived.size(), parameters) != 1) {
    ThrowLibraryError("deriving a key");
  }
  OPENSSL_cleanse(key.data(), key.size());
  return derived;
}

TlsStream& StreamOf(SSL* ssl) { return *static_cast<TlsStream*>(SSL_get_app_data(ssl)); }

// The pre-shared key, as a session that both have.
SSL_SESSION* SessionOf(SSL* ssl) {
  const Tls::Key& key = StreamOf(ssl).tls()->key();
  SSL_SESSION* session = SSL_SESSION_new();
  if (session != nullptr && SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kCipherOfKey)) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
      SSL_SESSION_set1_id_context(session, kPurpose, sizeof kPurpose) == 1) {
    return session;
  }
  SSL_SESSION_free(session);
  return nullptr;
}

int OfferKey(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* size,
             SSL_SESSION** session) {
  const std::string& name = StreamOf(ssl).tls()->name();
  *identity = reinterpret_cast<const unsigned char*>(name.data());
  *size = name.size();
  *session = SessionOf(ssl);
  return *session != nullptr ? 1 : 0;
}

int FindKey(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session) {
  if (size <= kMostNameBytes) {
    StreamOf(ssl).set_claimed_name(std::string(reinterpret_cast<const char*>(identity), size));
  }
  *session = SessionOf(ssl);
  return *session != nullptr ? 1 : 0;
}

// The library's own sockets would raise SIGPIPE, and take one record at a time.

TlsStream& StreamOf(BIO* bio) { return *static_cast<TlsStream*>(BIO_get_data(bio)); }

bool MustWait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int KeepRecord(BIO* bio, const char* data, int bytes) {
  BIO_clear_retry_flags(bio);
  return StreamOf(bio).Keep(data, static_cast<size_t>(bytes)) ? bytes : -1;
}

int ReadFromSocket(BIO* bio, char* data, int bytes) {
  BIO_clear_retry_flags(bio);
  const ssize_t received = recv(StreamOf(bio).file(), data, bytes, MSG_DONTWAIT);
  if (received < 0 && MustWait()) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

// The library asks for it at the end of what it says in a handshake, and after an alert or a change
// of keys, where what must wait goes with what is sent next.
long ControlSocket(BIO* bio, int command, long, void*) {
  if (command != BIO_CTRL_FLUSH) return 0;
  BIO_clear_retry_flags(bio);
  TlsStream& stream = StreamOf(bio);
  const int outcome = stream.Flush();
  if (outcome == 0 && stream.tls() == nullptr) return 1;
  if (outcome == 0) BIO_set_retry_write(bio);
  return outcome > 0 ? 1 : -1;
}

BIO* NewSocketBio(TlsStream* stream) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rank");
    if (made == nullptr) ThrowLibraryError("making a kind of stream");
    BIO_meth_set_write(made, &KeepRecord);
    BIO_meth_set_read(made, &ReadFromSocket);
    BIO_meth_set_ctrl(made, &ControlSocket);
    return made;
  }();
  BIO* bio = BIO_new(method);
  if (bio == nullptr) ThrowLibraryError("making a stream");
  BIO_set_data(bio, stream);
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace

void Tls::Free::operator()(SSL_CTX* context) const { SSL_CTX_free(context); }

const std::string& Tls::FastestFirst() {
  StartLibrary();
  static const std::string ciphers = TimeCipher("AES-128-GCM") <= TimeCipher("ChaCha20-Poly1305")
                                         ? std::string(kAes) + ":" + kChaCha
                                         : std::string(kChaCha) + ":" + kAes;
  return ciphers;
}

Tls::Tls(const std::string& secret, const std::string& name, const std::string& ciphers)
    : name_(name) {
  StartLibrary();
  key_ = DeriveKey(secret);
  context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = context_.get();
  // Without a certificate that anybody trusts, only the key opens a connection.
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, ciphers.c_str()) != 1 ||
      SSL_CTX_set_num_tickets(context, 0) != 1) {
    ThrowLibraryError("settings");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, kPurpose, sizeof kPurpose);
  SSL_CTX_set_psk_use_session_callback(context, &OfferKey);
  SSL_CTX_set_psk_find_session_callback(context, &FindKey);
}

std::string TlsStream::cipher() const { return SSL_get_cipher_name(ssl_.get()); }

void TlsStream::Free::operator()(SSL* ssl) const { SSL_free(ssl); }

TlsStream::TlsStream(const Tls& tls, Side side, int file, int64_t bytes_per_key)
    : tls_(&tls),
      side_(side),
      file_(file),
      bytes_per_key_(bytes_per_key),
      ssl_(SSL_new(tls.context())) {
  if (ssl_ == nullptr) ThrowLibraryError("making a connection");
  records_.reserve(kHandshakeRoom);
  SSL_set_app_data(ssl_.get(), this);
  BIO* bio = NewSocketBio(this);
  SSL_set_bio(ssl_.get(), bio, bio);
}

TlsStream::Progress TlsStream::Handshake() {
  ERR_clear_error();
  const int outcome = side_ == Side::kConnects ? SSL_connect(ssl_.get()) : SSL_accept(ssl_.get());
  if (outcome == 1) {
    tls_ = nullptr;
    // (The pre-shared key counts as a session that is resumed.)
    return SSL_session_reused(ssl_.get()) == 1 ? Progress::kDone : Progress::kRefused;
  }
  switch (SSL_get_error(ssl_.get(), outcome)) {
    case SSL_ERROR_WANT_READ:
      return Progress::kMustRead;
    case SSL_ERROR_WANT_WRITE:
      return Progress::kMustWrite;
    case SSL_ERROR_SSL: {
      const bool ended = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
      return ended ? Progress::kEnded : Progress::kRefused;
    }
    default:
      return Progress::kEnded;
  }
}

bool TlsStream::Keep(const char* record, size_t bytes) {
  // (It must not throw through the library.)
  if (records_.capacity() - records_.size() < bytes) return false;
  records_.insert(records_.end(), record, record + bytes);
  return true;
}

int TlsStream::Flush() {
  while (sent_ < records_.size()) {
    const ssize_t sent =
        send(file_, records_.data() + sent_, records_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return MustWait() ? 0 : -1;
    sent_ += static_cast<size_t>(sent);
  }
  records_.clear();
  sent_ = 0;
  return 1;
}

int64_t TlsStream::Encrypt(const void* data, size_t bytes) {
  ERR_clear_error();
  records_.reserve(records_.size() + bytes + (bytes / kRecordContent + 1) * kMostAroundRecord +
                   kMostAroundRecord);
  size_t written = 0;
  if (SSL_write_ex(ssl_.get(), data, bytes, &written) != 1) return -1;
  written_ += static_cast<int64_t>(written);
  // A key of AES-GCM is safe for 2^24.5 records. The next one is announced with what is sent
  // next.
  if (written_ >= bytes_per_key_) {
    written_ = 0;
    if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) return -1;
  }
  return static_cast<int64_t>(written);
}

int64_t TlsStream::Write(const void* data, size_t bytes) {
  if (data_in_records_ == 0) {
    const int64_t encrypted = Encrypt(data, std::min(bytes, kBatch));
    if (encrypted < 0) return -1;
    data_in_records_ = encrypted;
  }
  const int outcome = Flush();
  return outcome <= 0 ? outcome : std::exchange(data_in_records_, 0);
}

int64_t TlsStream::Read(void* data, size_t bytes) {
  ERR_clear_error();
  size_t received = 0;
  const int outcome = SSL_read_ex(ssl_.get(), data, bytes, &received);
  if (outcome == 1) return static_cast<int64_t>(received);
  return SSL_get_error(ssl_.get(), outcome) == SSL_ERROR_WANT_READ ? 0 : -1;
}

void TlsStream::ReadAhead() {
  SSL_set_default_read_buffer_len(ssl_.get(), kBatch);
  SSL_set_read_ahead(ssl_.get(), 1);
}

}  // namespace cpu
