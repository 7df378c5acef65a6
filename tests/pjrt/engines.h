// The plugins that the tests run on.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "hlo/builder.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "pjrt/client/client.h"

namespace pjrt {

struct Engine {
  std::string name;  // "ours", "foreign"
  std::string path;  // empty: not there
};

inline void PrintTo(const Engine& engine, std::ostream* out) { *out << engine.name; }

// Our plugin; TORCH_XLA_TEST_PLUGIN names another build of it. In tests/remote, through a server.
inline Engine OurEngine() {
#ifdef PLUGIN_REMOTE
  return {"remote", PLUGIN_REMOTE};
#endif
  if (const char* path = std::getenv("TORCH_XLA_TEST_PLUGIN")) return {"ours", path};
#ifdef PLUGIN_CPU
  return {"ours", PLUGIN_CPU};
#else
  return {"ours", ""};
#endif
}

// XLA:CPU, the oracle: PJRT_LIBRARY_PATH, or what the virtual environment holds.
inline Engine ForeignEngine() {
  if (const char* path = std::getenv("PJRT_LIBRARY_PATH")) return {"foreign", path};
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(SOURCE_DIRECTORY "/.venv/lib", error)) {
    const fs::path package = python.path() / "site-packages/lammps_jax_pjrt_cpu";
    for (const auto& file : fs::directory_iterator(package, error)) {
      if (file.path().extension() == ".so") return {"foreign", file.path()};
    }
  }
  return {"foreign", ""};
}

// A client with two devices that all tests of a program share; null if the engine is not there.
inline std::shared_ptr<Client> ClientOf(const Engine& engine) {
  if (engine.path.empty()) return nullptr;
  static auto* clients = new std::map<std::string, std::shared_ptr<Client>>;
  std::shared_ptr<Client>& client = (*clients)[engine.name];
  if (client == nullptr) {
    NamedValues options;
    if (engine.name != "remote") options["cpu_device_count"] = int64_t{2};  // the server has them
    client = Client::Create(Plugin::Load(engine.path), options);
  }
  return client;
}

// A module whose entry `build` fills; it returns the results.
template <typename Build>
std::unique_ptr<hlo::Module> MakeModule(const std::string& name, const Build& build) {
  auto module = std::make_unique<hlo::Module>(name);
  hlo::Computation* entry = module->AddComputation("main");
  hlo::Builder builder(entry);
  entry->set_results(build(builder));
  module->set_entry(entry);
  return module;
}

inline const hlo::Shape kVector(hlo::ElementType::kF32, {4});

// x + y and x * y of kVector; x may be donated to the sum.
inline std::unique_ptr<hlo::Module> SumAndProduct(bool donate = false) {
  auto module = MakeModule("sum_and_product", [](hlo::Builder& b) {
    hlo::Value x = b.Parameter(kVector), y = b.Parameter(kVector);
    return std::vector<hlo::Value>{b.Add(x, y), b.Multiply(x, y)};
  });
  if (donate) module->input_output_aliases.push_back({.output = 0, .parameter = 0});
  return module;
}

inline hlo::Literal Vector(float a, float b, float c, float d) {
  return hlo::Literal::FromVector<float>({a, b, c, d});
}

}  // namespace pjrt
