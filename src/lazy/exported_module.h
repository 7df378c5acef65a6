// A graph as a program for others to run and to read, who know nothing of packed numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "lazy/graph.h"

namespace lazy {

struct ExportedModule {
  // Parameters: the graph's data leaves, then `numbers`. One result for each root.
  std::unique_ptr<hlo::Module> module;
  std::vector<hlo::Literal> numbers;  // of rank 0
};

// The user's numbers are constants of the program. Without `inlines_numbers` those other than 0, 1
// and -1 are parameters; the keys of random numbers are constants always. What is constant is
// computed, and equal work done once.
ExportedModule ExportGraph(const Graph& graph, const std::string& name, bool inlines_numbers);

}  // namespace lazy
