#include "pjrt/boundary/event.h"

#include <mutex>
#include <utility>

#include "pjrt/boundary/boundary.h"
#include "pjrt/boundary/functions.h"

namespace pjrt::boundary {
namespace {

const FailurePtr& LostByFork() {
  static const auto* failure = new FailurePtr(std::make_shared<Failure>(
      hlo::ErrorCode::kAborted,
      "the value was still being computed when this process was forked; only the parent has it"));
  return *failure;
}
[[maybe_unused]] const FailurePtr& lost_by_fork_made_early =
    LostByFork();  // who waits may have no memory

}  // namespace

const CompletionPtr& Completion::Done() {
  static const auto* done = [] {
    auto completion = std::make_shared<Completion>();
    completion->Set();
    return new CompletionPtr(std::move(completion));
  }();
  return *done;
}

CompletionPtr Completion::OfHandle() {
  auto completion = std::make_shared<Completion>();
  completion->generation_ = kAny;
  return completion;
}

CompletionPtr Completion::Failed(FailurePtr failure) {
  auto completion = std::make_shared<Completion>();
  completion->Set(std::move(failure));
  return completion;
}

void Completion::Run(const Callback& callback) const noexcept {
  try {
    callback(failure_);
  } catch (...) {
  }
}

void Completion::Set(FailurePtr failure) noexcept {
  std::vector<Callback> callbacks;
  {
    std::lock_guard lock(mutex_);
    if (is_set()) return;
    failure_ = std::move(failure);
    set_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
  }
  set_.notify_all();
  for (const Callback& callback : callbacks) Run(callback);
}

void Completion::Wait() {
  if (IsSetOrLost()) return;
  const process::MayFork waiting;
  set_.wait(false, std::memory_order_acquire);
}

bool Completion::IsSetOrLost() {
  if (!is_set() && generation_ != kAny && generation_ != process::ForkGeneration()) {
    Set(LostByFork());
  }
  return is_set();
}

void Completion::OnSet(Callback callback) {
  if (!IsSetOrLost()) {
    std::lock_guard lock(mutex_);
    if (!is_set()) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  Run(callback);
}

PJRT_Event* NewEvent(CompletionPtr completion) { return new PJRT_Event{std::move(completion)}; }

void Event_Destroy(PJRT_Event_Destroy_Args& args) { delete args.event; }

void Event_IsReady(PJRT_Event_IsReady_Args& args) {
  args.is_ready = Require(args.event, "event").completion->IsSetOrLost();
}

void Event_Error(PJRT_Event_Error_Args& args) {
  Completion& completion = *Require(args.event, "event").completion;
  if (!completion.IsSetOrLost()) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition,
                     "the event is not ready; its error is not known yet");
  }
  if (completion.failure() != nullptr) throw *completion.failure();
}

void Event_Await(PJRT_Event_Await_Args& args) {
  const CompletionPtr completion = Require(args.event, "event").completion;
  completion->Wait();
  if (completion->failure() != nullptr) throw *completion->failure();
}

void Event_OnReady(PJRT_Event_OnReady_Args& args) {
  const CompletionPtr completion = Require(args.event, "event").completion;
  if (args.callback == nullptr) throw hlo::Error("callback is null");
  completion->OnSet(
      [callback = args.callback, user_arg = args.user_arg](const FailurePtr& failure) {
        const process::MayFork elsewhere;
        callback(NewError(failure.get()), user_arg);
      });
}

void Event_Create(PJRT_Event_Create_Args& args) { args.event = NewEvent(Completion::OfHandle()); }

void Event_Set(PJRT_Event_Set_Args& args) {
  const CompletionPtr completion = Require(args.event, "event").completion;
  if (completion->is_set()) {
    throw hlo::Error(hlo::ErrorCode::kFailedPrecondition, "the event has been set already");
  }
  completion->Set(args.error_code == PJRT_Error_Code_OK
                      ? nullptr
                      : FailureFrom(args.error_code, args.error_message, args.error_message_size));
}

}  // namespace pjrt::boundary
