// What core.xla_builder (torch_xla/core/xla_builder.py) is made of: programs in the form of hlo/,
// built from Python one operation at a time.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "hlo/builder.h"

namespace torch_xla {

// A value of a program being built, or a tuple of such: the program form itself has tuples only
// where an operation has several results, so they are flattened here.
struct UserShape {
  hlo::Shape array = {};  // of what is no tuple
  bool is_tuple = false;
  std::vector<UserShape> elements = {};

  void Flatten(std::vector<hlo::Shape>& out) const;
  bool operator==(const UserShape&) const = default;
  std::string ToString() const;
};

class UserBuilder;

struct UserOp {
  std::shared_ptr<UserBuilder> builder = {};
  hlo::Value value = nullptr;  // null: a tuple
  std::vector<UserOp> elements = {};

  bool is_tuple() const { return value == nullptr; }
  UserShape shape() const;
  void Flatten(std::vector<hlo::Value>& out) const;
  // Of the shape, from the values of its leaves, which are taken off the front.
  static UserOp FromLeaves(std::shared_ptr<UserBuilder> builder, const UserShape& shape,
                           std::span<const hlo::Value>& leaves);
};

// A finished computation: a module of its own, whose parameters and results are the leaves.
struct UserComputation {
  std::string name;
  std::shared_ptr<const hlo::Module> module;
  std::vector<UserShape> parameters;
  UserShape result;
  size_t hash = 0;  // of the module
};

// A computation under construction.
class UserBuilder {
 public:
  explicit UserBuilder(const std::string& name);
  hlo::Builder& builder() { return builder_; }
  const std::string& name() const { return name_; }
  // The next parameter. Throws ValueError for another number.
  UserOp Parameter(std::shared_ptr<UserBuilder> self, int64_t number, const UserShape& shape);
  // What computes `root` from the parameters. The builder may go on.
  std::shared_ptr<UserComputation> Build(const std::string& name, const UserOp& root);

 private:
  std::string name_;
  hlo::Module module_;
  hlo::Builder builder_;
  std::vector<UserShape> parameters_;
};

// The operation that core.xla_builder calls `name`: "Add", "BroadcastInDim", "While". Throws
// NotImplementedError for an unknown one, and hlo::Error where the operands do not fit.
UserOp CreateUserOp(std::shared_ptr<UserBuilder> builder, const std::string& name,
                    const std::vector<UserOp>& operands, const pybind11::dict& attributes);

// As Python has shapes: {"type": "f32", "sizes": (2, 3)}, or a sequence of shapes for a tuple.
UserShape ShapeFromPython(const pybind11::handle& shape);
pybind11::object ShapeToPython(const UserShape& shape);

}  // namespace torch_xla
