// Clients that span processes: this program forks, and each child makes a client of its own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "engines.h"
#include "temporary_folder.h"

namespace pjrt {
namespace {

using std::chrono::milliseconds;

// A store in a folder that all children see.
class FolderStore {
 public:
  // For who ends without destructors.
  void Remove() { folder_.Remove(); }

  KeyValueStore Store() const {
    auto path = [folder = folder_.path()](std::string_view key) {
      std::string name(key);
      std::replace(name.begin(), name.end(), '/', '.');
      return folder + "/" + name;
    };
    KeyValueStore store;
    store.put = [path](std::string_view key, std::string_view value) {
      const std::string aside = path(key) + "~" + std::to_string(getpid());
      std::ofstream(aside, std::ios::binary) << value;
      std::filesystem::rename(aside, path(key));
    };
    store.try_get = [path](std::string_view key) -> std::optional<std::string> {
      std::ifstream file(path(key), std::ios::binary);
      if (!file) return {};
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    store.get = [try_get = store.try_get](std::string_view key, milliseconds timeout) {
      const auto deadline = std::chrono::steady_clock::now() + timeout;
      while (true) {
        if (auto value = try_get(key)) return *value;
        if (std::chrono::steady_clock::now() > deadline) {
          throw hlo::Error(hlo::ErrorCode::kDeadlineExceeded, "no " + std::string(key));
        }
        std::this_thread::sleep_for(milliseconds(1));
      }
    };
    return store;
  }

 private:
  test::TemporaryFolder folder_;
};

std::shared_ptr<Client> Join(const FolderStore& store, int64_t rank, int64_t size) {
  return Client::Create(Plugin::Load(OurEngine().path), {{"node_id", rank}, {"num_nodes", size}},
                        store.Store());
}

// Runs body(rank) in a child for each rank; a body fails by throwing.
void InChildren(int64_t count, const std::function<void(int64_t)>& body) {
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < count; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      int status = 0;
      try {
        body(rank);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(rank), error.what());
        status = 1;
      }
      std::fflush(nullptr);
      _exit(status);
    }
    children.push_back(child);
  }
  for (size_t rank = 0; rank < children.size(); ++rank) {
    int status = -1;
    ASSERT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_EQ(status, 0) << "rank " << rank;
  }
}

std::vector<hlo::Literal> Results(const LoadedExecutable& executable,
                                  std::vector<const Buffer*> arguments) {
  std::vector<hlo::Literal> results;
  for (const auto& output : executable.Execute(arguments).outputs) {
    results.push_back(output->ToLiteral());
  }
  return results;
}

#define REQUIRE(condition)                                                                    \
  do {                                                                                        \
    if (!(condition)) throw hlo::Error("line " + std::to_string(__LINE__) + ": " #condition); \
  } while (false)

hlo::Value AllReduce(hlo::Builder& b, hlo::Value x) {
  hlo::Computation* add = b.ScalarCombiner(hlo::Opcode::kAdd, x->element_type());
  return b.Create(hlo::Opcode::kAllReduce, {x}, hlo::CollectiveAttributes{}, {add});
}

CompileOptions ForWorld(int64_t size) {
  CompileOptions options;
  options.num_replicas = size;
  for (int64_t id = 0; id < size; ++id) options.device_assignment.push_back(id);
  return options;
}

class WorldTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_FALSE(OurEngine().path.empty()) << "the plugin is not built";
    Plugin::Load(OurEngine().path);
  }
  FolderStore store_, other_store_;
};

TEST_F(WorldTest, DevicesOfAllProcesses) {
  InChildren(2, [&](int64_t rank) {
    auto client = Join(store_, rank, 2);
    REQUIRE(client->process_index() == rank);
    REQUIRE(client->devices().size() == 2);
    REQUIRE(client->addressable_devices().size() == 1);
    for (int64_t id = 0; id < 2; ++id) {
      const Device& device = client->LookupDevice(static_cast<int>(id));
      REQUIRE(device.process_index() == id);
      REQUIRE(device.is_addressable() == (id == rank));
    }
    REQUIRE(client->addressable_devices()[0]->id() == rank);
    REQUIRE(client->DefaultDeviceAssignment(2, 1) == (std::vector<int64_t>{0, 1}));
    REQUIRE(client->DefaultDeviceAssignment(1, 1) == std::vector<int64_t>{rank});
    bool refused = false;
    try {
      client->BufferFromLiteral(Vector(1, 2, 3, 4),
                                client->LookupDevice(1 - static_cast<int>(rank)));
    } catch (const hlo::Error&) {
      refused = true;
    }
    REQUIRE(refused);
    // Programs of one device run on this process's own.
    auto executable = client->Compile(*SumAndProduct());
    auto x = client->BufferFromLiteral(Vector(1, 2, 3, 4), *client->addressable_devices()[0]);
    REQUIRE(Results(*executable, {x.get(), x.get()})[0] == Vector(2, 4, 6, 8));
  });
}

// The rank is the client's, not the process's for ever.
TEST_F(WorldTest, DumpsBearTheRankOfTheirClient) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the folder's name is read once in a process
  const auto names_of_dumps = [&] {
    test::TemporaryFolder dumps;
    const std::filesystem::path folder = dumps.path();
    setenv("TORCH_XLA_DUMP", folder.c_str(), 1);
    Join(store_, 1, 2)->Compile(*SumAndProduct());
    Client::Create(Plugin::Load(OurEngine().path))->Compile(*SumAndProduct());
    const bool named = std::filesystem::exists(folder / "rank1.0000.program") &&
                       std::filesystem::exists(folder / "0001.program");
    dumps.Remove();
    store_.Remove();
    other_store_.Remove();
    std::exit(named ? 0 : 1);
  };
  EXPECT_EXIT(names_of_dumps(), testing::ExitedWithCode(0), "");
}

TEST_F(WorldTest, AllReduceAndReplicaId) {
  for (int64_t size : {2, 4}) {
    FolderStore store;
    InChildren(size, [&](int64_t rank) {
      auto client = Join(store, rank, size);
      auto module = MakeModule("sum", [](hlo::Builder& b) {
        hlo::Value x = b.Parameter(kVector);
        hlo::Value id = b.Convert(b.Create(hlo::Opcode::kReplicaId, {}), hlo::ElementType::kF32);
        return std::vector<hlo::Value>{AllReduce(b, x), id};
      });
      auto executable = client->Compile(*module, ForWorld(size));
      const auto number = static_cast<float>(rank + 1);
      auto x =
          client->BufferFromLiteral(Vector(number, 1, 2, 3), *client->addressable_devices()[0]);
      const auto n = static_cast<float>(size);
      for (int repeat = 0; repeat < 100; ++repeat) {
        auto outputs = Results(*executable, {x.get()});
        REQUIRE(outputs[0] == Vector(n * (n + 1) / 2, n, 2 * n, 3 * n));
        REQUIRE(outputs[1].AsInt() == rank);
      }
      // The same after a round trip.
      auto loaded = client->DeserializeAndLoad(executable->executable().Serialize());
      REQUIRE(Results(*loaded, {x.get()})[0] == Vector(n * (n + 1) / 2, n, 2 * n, 3 * n));
    });
  }
}

// Processes that share no memory, as those of different hosts.
TEST_F(WorldTest, TheJobsSecretReachesTheNetwork) {
  InChildren(2, [&](int64_t rank) {
    setenv("TORCH_XLA_SHARED_MEMORY", "0", 1);
    setenv("TORCH_XLA_HEARTBEAT_TIMEOUT", "1", 1);
    auto module = MakeModule("sum", [](hlo::Builder& b) {
      return std::vector<hlo::Value>{AllReduce(b, b.Parameter(kVector))};
    });
    const std::string secret = "a secret that the ranks of a job have alike";
    auto run = [&](const std::string& mine, const FolderStore& store) {
      auto client = Client::Create(
          Plugin::Load(OurEngine().path),
          {{"node_id", rank}, {"num_nodes", int64_t{2}}, {"job_secret", mine}}, store.Store());
      auto executable = client->Compile(*module, ForWorld(2));
      auto x = client->BufferFromLiteral(Vector(1, 2, 3, 4), *client->addressable_devices()[0]);
      return Results(*executable, {x.get()})[0];
    };
    REQUIRE(run(secret, store_) == Vector(2, 4, 6, 8));
    std::string message;
    try {
      run(secret + std::to_string(rank), other_store_);
    } catch (const hlo::Error& error) {
      message = error.what();
    }
    REQUIRE(message.find(rank == 1 ? "rank 1 and rank 0 have different job secrets"
                                   : "has another job secret") != std::string::npos);
  });
}

// Each rank forks while a thread of it runs collectives and compiles. The children compute alone.
TEST_F(WorldTest, ForksBesideCollectives) {
  const char* text = std::getenv("TORCH_XLA_TEST_FORKS");
  const int forks = text != nullptr ? std::atoi(text) : 200;
  InChildren(2, [&](int64_t rank) {
    alarm(60 + forks);
    auto client = Join(store_, rank, 2);
    Device* device = client->addressable_devices()[0];
    auto sum = client->Compile(
        *MakeModule("sum",
                    [](hlo::Builder& b) {
                      return std::vector<hlo::Value>{AllReduce(b, b.Parameter(kVector))};
                    }),
        ForWorld(2));
    auto alone = client->Compile(*SumAndProduct());
    auto x = client->BufferFromLiteral(Vector(1, 2, 3, 4), *device);
    // Both ranks run as many: the one that has forked enough first says how many.
    std::atomic<bool> forked{false}, failed{false};
    std::thread collectives([&] {
      for (bool all = false; !all;) {
        auto mine = client->BufferFromLiteral(Vector(forked ? 0 : 1, 2, 3, 4), *device);
        const hlo::Literal voted = Results(*sum, {mine.get()})[0];
        all = voted.data<float>()[0] == 0;
        if (voted.data<float>()[3] != 8) failed = true;
      }
    });
    std::thread compiler([&] {
      while (!forked) client->Compile(*SumAndProduct());
    });
    for (int i = 0; i < forks && !failed; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);
        bool good = false;
        try {
          good = Results(*alone, {x.get(), x.get()})[0] == Vector(2, 4, 6, 8) &&
                 Results(*client->Compile(*SumAndProduct()), {x.get(), x.get()})[0] ==
                     Vector(2, 4, 6, 8);
          try {
            Results(*sum, {x.get()});
            good = false;  // a child takes no part
          } catch (const hlo::Error& error) {
            good = good && error.code() == hlo::ErrorCode::kFailedPrecondition;
          }
        } catch (const std::exception& error) {
          std::fprintf(stderr, "child %d: %s\n", i, error.what());
        }
        _exit(good ? 0 : 1);
      }
      int status = -1;
      waitpid(child, &status, 0);
      if (status != 0) failed = true;
    }
    forked = true;
    collectives.join();
    compiler.join();
    REQUIRE(!failed);
  });
}

// Collectives under way while the program computes, some of them in the memory of their operands.
TEST_F(WorldTest, InPlaceAndDonated) {
  const hlo::Shape shape(hlo::ElementType::kF32, {1000});
  auto filled = [&](float value) {
    hlo::Literal literal(shape);
    for (float& element : literal.mutable_data<float>()) element = value;
    return literal;
  };
  InChildren(2, [&](int64_t rank) {
    auto client = Join(store_, rank, 2);
    auto module = MakeModule("steps", [&](hlo::Builder& b) {
      hlo::Value x = b.Parameter(shape), y = b.Parameter(shape), z = b.Parameter(shape);
      hlo::Value sum_of_x = AllReduce(b, x);                // into x, which is donated
      hlo::Value product = AllReduce(b, b.Multiply(y, y));  // of a value that nobody else needs
      hlo::Value kept = b.Add(y, z);
      hlo::Value sum_of_kept = AllReduce(b, kept);  // of a result
      hlo::Value work = b.Multiply(b.Add(kept, z), z);
      hlo::Value sum_of_z = AllReduce(b, z);  // of an argument that stays
      return std::vector<hlo::Value>{sum_of_x, b.Add(product, work), kept, sum_of_kept,
                                     b.Subtract(sum_of_z, work)};
    });
    module->input_output_aliases.push_back({0, 0, false});
    auto executable = client->Compile(*module, ForWorld(2));
    Device* device = client->addressable_devices()[0];
    auto y = client->BufferFromLiteral(filled(static_cast<float>(rank + 1)), *device);
    auto z = client->BufferFromLiteral(filled(3), *device);
    const auto r = static_cast<float>(rank);
    for (int repeat = 0; repeat < 20; ++repeat) {
      auto x = client->BufferFromLiteral(filled(r + 5), *device);
      auto outputs = Results(*executable, {x.get(), y.get(), z.get()});
      const float kept = r + 4, work = (kept + 3) * 3;
      REQUIRE(outputs[0] == filled(11));
      REQUIRE(outputs[1] == filled(5 + work));
      REQUIRE(outputs[2] == filled(kept));
      REQUIRE(outputs[3] == filled(9));
      REQUIRE(outputs[4] == filled(6 - work));
      REQUIRE(x->IsDeleted());
    }
  });
}

}  // namespace
}  // namespace pjrt
