#include "lazy/cache_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "hlo/error.h"
#include "lazy/warning.h"

namespace lazy {
namespace {

using process::Sha256Digest;
using process::Sha256Of;

namespace fs = std::filesystem;

class CacheFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "cache_folder_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    path_ = root_ / "a" / "cache";
    SetWarningHandler([this](const std::string& text) { warnings_.push_back(text); });
  }
  void TearDown() override {
    SetWarningHandler([](const std::string&) {});
    fs::remove_all(root_);
  }
  // The only warning since the last call; it must say why.
  void ExpectWarning(const std::string& reason) {
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_NE(warnings_[0].find(reason), std::string::npos) << warnings_[0];
    EXPECT_NE(warnings_[0].find(path_.string()), std::string::npos) << warnings_[0];
    warnings_.clear();
  }
  mode_t Mode(const fs::path& path) {
    struct stat status;
    EXPECT_EQ(lstat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  fs::path root_, path_;
  std::vector<std::string> warnings_;
  const Sha256Digest key_ = Sha256Of("key");
};

TEST_F(CacheFolderTest, KeepsBytesUnderAKey) {
  CacheFolder folder(path_, false);
  EXPECT_EQ(folder.Read(key_), std::nullopt);
  for (const std::string& bytes :
       {std::string("one\0two", 7), std::string(), std::string(1 << 20, 'x')}) {
    folder.Write(key_, bytes);
    EXPECT_EQ(folder.Read(key_), bytes);
  }
  EXPECT_EQ(folder.Read(Sha256Of("other")), std::nullopt);
  EXPECT_EQ(CacheFolder(path_, true).Read(key_)->size(), size_t{1} << 20);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CacheFolderTest, IsPrivate) {
  const mode_t mask = umask(0);
  CacheFolder folder(path_, false);
  folder.Write(key_, "bytes");
  umask(mask);
  EXPECT_EQ(Mode(path_), 0700u);
  EXPECT_EQ(Mode(folder.EntryPath(key_)), 0600u);
}

TEST_F(CacheFolderTest, RefusesFoldersThatOthersCanChange) {
  fs::create_directories(path_);
  for (mode_t mode : {0770, 0707, 01777}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    for (bool readonly : {false, true}) {
      try {
        CacheFolder folder(path_, readonly);
        FAIL() << std::oct << mode;
      } catch (const hlo::Error& error) {
        EXPECT_EQ(error.code(), hlo::ErrorCode::kPermissionDenied);
        EXPECT_NE(std::string(error.what()).find("others may write to it"), std::string::npos);
      }
    }
  }
  ASSERT_EQ(chmod(path_.c_str(), 0755), 0);
  CacheFolder folder(path_, false);
}

TEST_F(CacheFolderTest, RefusesAnotherUsersFolder) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directories(path_);
  ASSERT_EQ(chown(path_.c_str(), 1234, 1234), 0);
  EXPECT_THROW(CacheFolder(path_, false), hlo::Error);
  setenv("TORCH_XLA_CACHE_TRUSTED_USERS", "7,1234", 1);
  CacheFolder folder(path_, false);
  unsetenv("TORCH_XLA_CACHE_TRUSTED_USERS");
  // Nor an entry of theirs in a folder of this user's.
  folder.Write(key_, "bytes");
  ASSERT_EQ(chown(folder.EntryPath(key_).c_str(), 1234, 1234), 0);
  EXPECT_EQ(folder.Read(key_), std::nullopt);
  ExpectWarning("belongs to user 1234");
}

TEST_F(CacheFolderTest, RefusesWhatIsNoFolder) {
  EXPECT_THROW(CacheFolder(path_, true), hlo::Error);
  EXPECT_THROW(CacheFolder("", false), hlo::Error);
  std::ofstream(root_ / "a");
  EXPECT_THROW(CacheFolder(root_ / "a", false), hlo::Error);
  EXPECT_THROW(CacheFolder(path_, false), hlo::Error);
}

TEST_F(CacheFolderTest, ReadonlyWritesNothing) {
  fs::create_directories(path_);
  CacheFolder folder(path_, true);
  folder.Write(key_, "bytes");
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(CacheFolderTest, AnyDamageIsNoticed) {
  CacheFolder folder(path_, false);
  folder.Write(key_, "0123456789");
  const fs::path entry = folder.EntryPath(key_);
  const auto size = static_cast<size_t>(fs::file_size(entry));
  std::string whole(size, '\0');
  std::ifstream(entry, std::ios::binary).read(whole.data(), static_cast<std::streamsize>(size));
  const auto put = [&](const std::string& content) {
    std::ofstream(entry, std::ios::binary | std::ios::trunc) << content;
  };
  for (size_t i = 0; i < size; ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x20);
    put(changed);
    EXPECT_EQ(folder.Read(key_), std::nullopt) << "byte " << i;
    put(whole.substr(0, i));
    EXPECT_EQ(folder.Read(key_), std::nullopt) << "cut off at " << i;
  }
  put(whole + "x");
  EXPECT_EQ(folder.Read(key_), std::nullopt);
  EXPECT_EQ(warnings_.size(), 2 * size + 1);
  warnings_.clear();
  put(whole);
  EXPECT_EQ(folder.Read(key_), "0123456789");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(CacheFolderTest, ForeignEntriesAreNotUsed) {
  CacheFolder folder(path_, false);
  folder.Write(key_, "bytes");
  const Sha256Digest other = Sha256Of("other");
  fs::copy_file(folder.EntryPath(key_), folder.EntryPath(other));
  ASSERT_EQ(chmod(folder.EntryPath(other).c_str(), 0600), 0);
  EXPECT_EQ(folder.Read(other), std::nullopt);
  ExpectWarning("another program's");
  ASSERT_EQ(chmod(folder.EntryPath(key_).c_str(), 0666), 0);
  EXPECT_EQ(folder.Read(key_), std::nullopt);
  ExpectWarning("others may write to it");
  fs::remove(folder.EntryPath(other));
  fs::create_symlink(folder.EntryPath(key_), folder.EntryPath(other));
  EXPECT_EQ(folder.Read(other), std::nullopt);
  ExpectWarning(folder.EntryPath(other));
  fs::remove(folder.EntryPath(other));
  ASSERT_EQ(mkfifo(folder.EntryPath(other).c_str(), 0600), 0);
  EXPECT_EQ(folder.Read(other), std::nullopt);
  ExpectWarning("it is no file");
  // Written again, it is used.
  folder.Write(key_, "new");
  EXPECT_EQ(folder.Read(key_), "new");
}

TEST_F(CacheFolderTest, FailureToWriteIsSaidOnce) {
  CacheFolder folder(path_, false);
  fs::remove_all(path_);
  folder.Write(key_, "bytes");
  folder.Write(key_, "bytes");
  ExpectWarning("cannot be kept");
}

TEST_F(CacheFolderTest, RemovesWhatKilledProcessesLeft) {
  fs::create_directories(path_);
  std::ofstream(path_ / ".old.1.partial");
  std::ofstream(path_ / ".new.1.partial");
  std::ofstream(path_ / "mine");
  fs::last_write_time(path_ / ".old.1.partial",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  CacheFolder folder(path_, false);
  EXPECT_FALSE(fs::exists(path_ / ".old.1.partial"));
  EXPECT_TRUE(fs::exists(path_ / ".new.1.partial"));
  EXPECT_TRUE(fs::exists(path_ / "mine"));
}

// Processes that write one key all the time, some of them killed, and one that reads: it sees whole
// entries only.
TEST_F(CacheFolderTest, ProcessesShareAFolder) {
  {
    CacheFolder folder(path_, false);
  }
  std::vector<pid_t> children;
  for (int writer = 0; writer < 3; ++writer) {
    pid_t child = fork();
    if (child == 0) {
      CacheFolder folder(path_, false);
      for (size_t i = 0;; ++i) folder.Write(key_, std::string(i * 4099 % 65536, 'a'));
    }
    children.push_back(child);
  }
  CacheFolder folder(path_, false);
  int found = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) found += folder.Read(key_).has_value();
  for (pid_t child : children) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  EXPECT_GT(found, 0);
  EXPECT_TRUE(folder.Read(key_).has_value());
  EXPECT_TRUE(warnings_.empty()) << warnings_[0];
}

}  // namespace
}  // namespace lazy
