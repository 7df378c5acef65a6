#include "lazy/storage.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "lazy/capture.h"
#include "lazy/data.h"
#include "lazy/device.h"
#include "lazy/eager.h"
#include "lazy/op.h"
#include "lazy/tensor_counts.h"
#include "process/small_memory.h"

namespace lazy {
namespace {

std::atomic<int64_t> next_storage_id{1};

bool IsPending(const Value& value) { return value && value.node->role() == Node::Role::kOperation; }

void NoteHolder(const Value& value, int64_t storage) {
  if (value && value.node->role() == Node::Role::kData) value.node->data()->NoteHolder(storage);
}

}  // namespace

void SpinLock::Pause(int tries) {
  if (tries < 100) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));  // whoever has it was interrupted
  }
}

Storage::Storage(Device* device, Value value)
    : device_(device),
      id_(next_storage_id.fetch_add(1, std::memory_order_relaxed)),
      value_(std::move(value)) {
  NoteHolder(value_, id_);
}

Reference<Storage> Storage::Make(Device* device, Value value) {
  if (IsPending(value) && RunsAsCalled()) value = RunNow(device, std::move(value));
  Reference<Storage> storage(new (process::AllocateSmall(sizeof(Storage)))
                                 Storage(device, std::move(value)));
  if (!IsPending(storage->value_)) return storage;
  std::lock_guard lock(device->pending_mutex);
  // No other thread knows it, so its own lock is not needed.
  storage->Link(storage->ProperPlace(CaptureScope::Current()));
  return storage;
}

int64_t Storage::next_id() { return next_storage_id.load(std::memory_order_relaxed); }

Value Storage::value() const {
  std::lock_guard lock(lock_);
  return value_;
}

void* Storage::Attachment(std::shared_ptr<void> (*make)(Storage&)) {
  {
    std::lock_guard lock(lock_);
    if (attachment_) return attachment_.get();
  }
  std::shared_ptr<void> made = make(*this);
  std::lock_guard lock(lock_);
  if (!attachment_) attachment_ = std::move(made);
  return attachment_.get();
}

void Storage::GiveUp(const Value& expected) {
  std::lock_guard lock(lock_);
  if (value_ == expected) is_given_up_ = true;
}

bool Storage::is_given_up() const {
  std::lock_guard lock(lock_);
  return is_given_up_;
}

int64_t Storage::replaced_data() const {
  std::lock_guard lock(lock_);
  return replaced_data_;
}

bool Storage::Replace(const Value* expected, Value value) {
  const CaptureScope* const capture = CaptureScope::Current();
  if (capture != nullptr) capture->CheckWrite(*this);
  if (IsPending(value) && RunsAsCalled()) value = RunNow(device_, std::move(value));
  std::vector<Value> dropped;
  bool is_misplaced = false;
  {
    std::lock_guard lock(lock_);
    if (expected != nullptr && !(value_ == *expected)) return false;
    if (value_ && value_.node->role() == Node::Role::kData) {
      replaced_data_ = value_.node->data()->id();
    }
    std::swap(value_, value);  // the old value is destroyed after unlocking
    is_given_up_ = false;
    NoteHolder(value_, id_);
    if (!views_with_value_.empty()) TakeViewValues(&dropped);
    is_misplaced = place_ != ProperPlace(capture);
  }
  if (is_misplaced) Move(capture);
  CountPassingTensor();  // the value before
  return true;
}

void Storage::Materialize(const Value& expected, const Value& data) {
  const CaptureScope* const capture = CaptureScope::Current();
  Value old;
  std::vector<Value> dropped;
  bool is_misplaced = false;
  {
    std::lock_guard lock(lock_);
    if (!(value_ == expected)) return;
    old = std::move(value_);
    value_ = data;
    is_given_up_ = false;
    NoteHolder(value_, id_);
    replaced_data_ = 0;
    TakeViewValues(&dropped);
    is_misplaced = place_ != ProperPlace(capture);
  }
  if (is_misplaced) Move(capture);
}

Storage::Pending Storage::TakePending() {
  std::vector<Value> dropped;
  std::lock_guard lock(lock_);
  if (!IsPending(value_)) return {};
  TakeViewValues(&dropped);
  return {value_, replaced_data_};
}

void Storage::TakeViewValues(std::vector<Value>* dropped) {
  for (View* view : views_with_value_) dropped->push_back(std::move(view->memo_));
  for (View* view : views_with_value_) view->memo_ = Value();
  views_with_value_.clear();
}

Storage::Place Storage::ProperPlace(const CaptureScope* capture) const {
  if (!IsPending(value_)) return Place::kNowhere;
  return capture != nullptr ? Place::kAlone : Place::kListed;
}

void Storage::Move(const CaptureScope* capture) {
  std::lock_guard list_lock(device_->pending_mutex);
  std::lock_guard lock(lock_);
  const Place proper = ProperPlace(capture);
  if (place_ == proper) return;
  if (place_ != Place::kNowhere) Unlink();
  if (proper != Place::kNowhere) Link(proper);
}

void Storage::Link(Place place) {
  place_ = place;
  if (place_ == Place::kAlone) return;
  previous_ = device_->pending_tail;
  next_ = nullptr;
  (previous_ != nullptr ? previous_->next_ : device_->pending_head) = this;
  device_->pending_tail = this;
}

void Storage::Unlink() {
  const Place place = std::exchange(place_, Place::kNowhere);
  if (place == Place::kAlone) return;
  (previous_ != nullptr ? previous_->next_ : device_->pending_head) = next_;
  (next_ != nullptr ? next_->previous_ : device_->pending_tail) = previous_;
}

// Nobody refers to it any more, so that its place changes no more; who walks the list may be at it.
void Storage::Destroy() {
  CountTensorDestroyed();
  if (place_ != Place::kNowhere) {
    std::lock_guard lock(device_->pending_mutex);
    Unlink();
  }
  this->~Storage();
  process::FreeSmall(this, sizeof(Storage));
}

std::vector<Reference<Storage>> PendingStorages(Device* device) {
  std::vector<Reference<Storage>> out;
  std::lock_guard lock(device->pending_mutex);
  for (Storage* storage = device->pending_head; storage != nullptr; storage = storage->next_) {
    if (!storage->TryRetain()) continue;
    out.push_back(Reference<Storage>::Adopt(storage));
  }
  return out;
}

View::~View() {
  std::lock_guard lock(storage_->lock_);
  auto& views = storage_->views_with_value_;
  views.erase(std::remove(views.begin(), views.end(), this), views.end());
}

Value View::Read() {
  Value base;
  {
    std::lock_guard lock(storage_->lock_);
    if (memo_) return memo_;
    base = storage_->value_;
  }
  const Value part{RecordRead(base), 0};
  std::lock_guard lock(storage_->lock_);
  if (storage_->value_ == base && !memo_) {
    memo_ = part;
    storage_->views_with_value_.push_back(this);
  }
  return part;
}

// Most chains have no starts, and are recorded without a copy.
Reference<Node> View::RecordRead(const Value& base) const {
  OperandList operands;
  operands.Add(base);
  if (std::ranges::any_of(chain(), &ViewStep::has_start)) {
    return Op<&ReadView>::Record(operands, {AddStarts(operands, chain())});
  }
  operands.AddCount(0);
  return Op<&ReadView>::Record(operands, attributes_);
}

void View::Write(const Value& part, bool is_stretched) {
  WriteThrough(chain(), part, is_stretched);
}

void View::WriteThrough(const ViewChain& chain, const Value& part, bool is_stretched) {
  // Other threads may write other parts meanwhile.
  Value written;
  while (true) {
    const Value base = storage_->value();
    OperandList operands;
    operands.Add(base);
    operands.Add(part);
    written = {Op<&WriteView>::Record(operands, {AddStarts(operands, chain)}), 0};
    if (storage_->Replace(&base, written)) break;
  }
  if (is_stretched) return;
  std::lock_guard lock(storage_->lock_);
  if (memo_ || &chain != &this->chain() || !(storage_->value_ == written)) return;
  memo_ = part;  // what was just written is what a reader would read
  storage_->views_with_value_.push_back(this);
}

}  // namespace lazy
