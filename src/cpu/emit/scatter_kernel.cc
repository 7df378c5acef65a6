// Scatter: the results hold the operands already; updates are applied in their order, for each
// element of the results. Units share no element: they are what the first dimensions of the updates
// have in common with the operand, or else vectors along the innermost dimension of the windows.
#include <algorithm>

#include "cpu/emit/kernel.h"

namespace cpu {
namespace {

using hlo::Dimensions;
using hlo::Instruction;
using hlo::Opcode;

class ScatterKernel : public Kernel {
 public:
  using Kernel::Kernel;

 private:
  static constexpr int64_t kLeastParts = 16;

  struct ScatterPlan {
    const hlo::ScatterAttributes* attributes;
    size_t count;  // of operands
    Dimensions operand, updates, starts;
    std::vector<int64_t> scatter_dims;  // of the updates
    std::vector<int64_t> window_of;     // operand dimension to updates dimension, or -1
    std::vector<int64_t> batch_of;      // operand dimension to updates dimension, or -1
    std::vector<int64_t> source;        // indices' dimension to updates dimension, or -1
    int64_t apart = 0;  // so many of the updates' first dimensions each go to a place of their own
    bool lanes;
  };

  static bool Contains(const Dimensions& list, int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  }

  ScatterPlan PlanScatter(const Instruction* scatter) {
    ScatterPlan plan;
    const auto& a = scatter->as<hlo::ScatterAttributes>();
    plan.attributes = &a;
    plan.count = (scatter->operand_count() - 1) / 2;
    plan.operand = scatter->operand(0)->dimensions();
    plan.starts = scatter->operand(plan.count)->dimensions();
    plan.updates = scatter->operand(plan.count + 1)->dimensions();
    for (size_t d = 0; d < plan.updates.size(); ++d) {
      if (!Contains(a.update_window_dims, d)) plan.scatter_dims.push_back(d);
    }
    size_t next = 0;
    for (size_t d = 0; d < plan.starts.size(); ++d) {
      const bool vector = static_cast<int64_t>(d) == a.index_vector_dim;
      plan.source.push_back(vector ? -1 : plan.scatter_dims[next++]);
    }
    size_t window = 0;
    for (size_t d = 0; d < plan.operand.size(); ++d) {
      plan.window_of.push_back(-1);
      plan.batch_of.push_back(-1);
      auto batch = std::find(a.input_batching_dims.begin(), a.input_batching_dims.end(),
                             static_cast<int64_t>(d));
      if (batch != a.input_batching_dims.end()) {
        plan.batch_of.back() =
            plan.source[a.scatter_indices_batching_dims[batch - a.input_batching_dims.begin()]];
      } else if (!Contains(a.inserted_window_dims, d)) {
        plan.window_of.back() = a.update_window_dims[window++];
      }
    }
    plan.lanes = !plan.operand.empty() && plan.window_of.back() >= 0 &&
                 plan.window_of.back() == static_cast<int64_t>(plan.updates.size()) - 1 &&
                 plan.updates.back() > 1;
    while (plan.apart < static_cast<int64_t>(plan.updates.size()) - (plan.lanes ? 1 : 0) &&
           GoesApart(plan, plan.apart)) {
      ++plan.apart;
    }
    return plan;
  }

  // Whether updates at different positions of a dimension are never for one element.
  static bool GoesApart(const ScatterPlan& plan, int64_t update_dimension) {
    const auto of = [&](const std::vector<int64_t>& list) {
      return std::ranges::find(list, update_dimension) - list.begin();
    };
    if (of(plan.batch_of) < std::ssize(plan.batch_of)) return true;
    const int64_t d = of(plan.window_of);
    return d < std::ssize(plan.window_of) &&
           !Contains(plan.attributes->scatter_dims_to_operand_dims, d);
  }

  void EmitBody() override {
    const Instruction* scatter = body_.result();
    if (scatter->opcode() == Opcode::kGetTupleElement) scatter = scatter->operand(0);
    ScatterPlan plan = PlanScatter(scatter);
    // Few parts leave threads without work, where there may be many vectors.
    const Extent parts = emitter_.Product(plan.updates, 0, plan.apart);
    if (plan.lanes && sizes_.IsLess(parts, kLeastParts)) plan.apart = 0;
    std::vector<Run> apart, scattered, window;
    Extent updates = 1;
    for (int64_t d = 0; d < plan.apart; ++d) {
      apart.push_back({d, d + 1, emitter_.Size(plan.updates[d])});
    }
    for (int64_t d : plan.scatter_dims) {
      if (d < plan.apart) continue;
      scattered.push_back({d, d + 1, emitter_.Size(plan.updates[d])});
      updates = updates * scattered.back().size;
    }
    for (int64_t d : plan.attributes->update_window_dims) {
      const bool is_lanes = plan.lanes && d == static_cast<int64_t>(plan.updates.size()) - 1;
      if (d < plan.apart || is_lanes) continue;
      window.push_back({d, d + 1, emitter_.Size(plan.updates[d])});
    }
    Extent vectors = 1;
    if (plan.lanes) vectors = (emitter_.Size(plan.updates.back()) + (lanes_ - 1)) / lanes_;
    const Extent elements = updates * Product(window);
    const auto scatter_part = [&](const Index& part) {
      emitter_.Loop(I64(0), I64(updates), 1, {}, [&](llvm::Value* update, const Accumulators&) {
        Index at = Unflatten(update, emitter_.level(), scattered);
        at.insert(at.end(), part.begin(), part.end());
        ScatterUpdate(scatter, plan, at, window);
        return Accumulators{};
      });
      return Accumulators{};
    };
    if (apart.empty()) {
      SetWork({vectors, element_cost_, elements});
      first_vector_ = Begin();
      last_vector_ = End();
      scatter_part({});
      return;
    }
    SetWork({parts, element_cost_, elements * vectors});
    first_vector_ = I64(0);
    last_vector_ = I64(vectors);
    emitter_.Loop(Begin(), End(), 1, {}, [&](llvm::Value* unit, const Accumulators&) {
      return scatter_part(Unflatten(unit, emitter_.level(), apart));
    });
  }

  Position CoordinateOf(const Index& index, int64_t d) {
    for (const IndexGroup& group : index) {
      if (group.begin == d) return group.position;
    }
    return emitter_.ConstantPosition(0);
  }

  // Where the window of the index at `at` begins in the operand, and whether all of it lies inside.
  struct WindowStart {
    std::vector<Position> position;
    llvm::Value* inside;
  };
  WindowStart StartOf(const Instruction* scatter, const ScatterPlan& plan, const Index& at) {
    const Instruction* indices = scatter->operand(plan.count);
    WindowStart start{std::vector<Position>(plan.operand.size(), emitter_.ConstantPosition(0)),
                      b_.getTrue()};
    for (size_t k = 0; k < plan.attributes->scatter_dims_to_operand_dims.size(); ++k) {
      const int64_t d = plan.attributes->scatter_dims_to_operand_dims[k];
      Index index;
      for (size_t i = 0; i < plan.starts.size(); ++i) {
        const int64_t dim = static_cast<int64_t>(i);
        index.push_back(
            {dim, dim + 1,
             plan.source[i] < 0 ? emitter_.ConstantPosition(k) : CoordinateOf(at, plan.source[i])});
      }
      const int64_t size = plan.window_of[d] < 0 ? 1 : plan.updates[plan.window_of[d]];
      const bool fits = !sizes_.IsLess(emitter_.Size(plan.operand[d]), emitter_.Size(size));
      // Negative starts are large as unsigned numbers.
      llvm::Value* limit = I64(fits ? emitter_.Size(plan.operand[d]) - emitter_.Size(size) + 1 : 0);
      llvm::Value* value = emitter_.Evaluate(indices, index).element.real;
      emitter_.AtInnermost();
      value = hlo::IsSignedInteger(indices->element_type())
                  ? b_.CreateSExtOrTrunc(value, b_.getInt64Ty())
                  : b_.CreateZExtOrTrunc(value, b_.getInt64Ty());
      start.inside = b_.CreateAnd(start.inside, b_.CreateICmpULT(value, limit));
      start.position[d] = emitter_.ScalarPosition(value, emitter_.level());
    }
    for (size_t d = 0; d < plan.operand.size(); ++d) {
      if (plan.batch_of[d] >= 0) start.position[d] = CoordinateOf(at, plan.batch_of[d]);
    }
    return start;
  }

  // One index's window.
  void ScatterUpdate(const Instruction* scatter, const ScatterPlan& plan, const Index& at,
                     const std::vector<Run>& window) {
    const WindowStart start = StartOf(scatter, plan, at);
    emitter_.If(start.inside, [&] {
      ScalarNest(window, 0, at, {}, [&](const Index& outer, const Accumulators&) {
        auto apply = [&](const Index& full) {
          Index target;
          for (size_t d = 0; d < plan.operand.size(); ++d) {
            Position position = start.position[d];
            if (plan.window_of[d] >= 0) {
              position = emitter_.Add(position, CoordinateOf(full, plan.window_of[d]));
            }
            target.push_back({static_cast<int64_t>(d), static_cast<int64_t>(d) + 1, position});
          }
          Index from = full;
          SortGroups(from);
          CombineInto(scatter, plan, from, emitter_.Linearize(target, plan.operand));
        };
        if (!plan.lanes) {
          apply(outer);
          return Accumulators{};
        }
        const int64_t last = static_cast<int64_t>(plan.updates.size()) - 1;
        const Extent row = emitter_.Size(plan.updates.back());
        emitter_.Loop(
            first_vector_, last_vector_, 1, {}, [&](llvm::Value* unit, const Accumulators&) {
              const Position lane = emitter_.LanesFrom(
                  emitter_.Multiply(emitter_.ScalarPosition(unit, emitter_.level()), lanes_));
              if (row.divisor % lanes_ != 0) emitter_.set_mask(emitter_.InRange(lane, row));
              Index full = outer;
              full.push_back({last, last + 1, lane});
              apply(full);
              emitter_.set_mask({});
              return Accumulators{};
            });
        return Accumulators{};
      });
    });
  }

  void CombineInto(const Instruction* scatter, const ScatterPlan& plan, const Index& update,
                   const Position& target) {
    std::vector<Element> arguments;
    for (size_t i = 0; i < plan.count; ++i) {
      Position here = target;
      here.level = emitter_.level();  // what earlier updates wrote
      arguments.push_back(
          emitter_.Load(ResultPointer(i), here, scatter->operand(i)->element_type()).element);
    }
    for (size_t i = 0; i < plan.count; ++i) {
      arguments.push_back(emitter_.Evaluate(scatter->operand(plan.count + 1 + i), update).element);
    }
    emitter_.AtInnermost();
    emitter_.Widen(arguments);
    std::vector<Element> results = emitter_.Apply(*scatter->called_computations()[0], arguments);
    for (size_t i = 0; i < plan.count; ++i) {
      emitter_.Store(ResultPointer(i), target, results[i], scatter->operand(i)->element_type());
    }
  }

  llvm::Value* first_vector_ = nullptr;  // of the windows' innermost dimension
  llvm::Value* last_vector_ = nullptr;
};

}  // namespace

KernelInfo EmitScatterKernel(llvm::Module& module, const std::string& name,
                             const Instruction& composite, KernelSizes& sizes) {
  return ScatterKernel(module, name, composite, sizes).Emit();
}

}  // namespace cpu
