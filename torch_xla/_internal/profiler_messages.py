"""The messages of the profiler service that TensorBoard's "capture profile" calls (tensorflow.ProfilerService).

They are built here rather than generated, in a pool of their own, so that they do not collide with TensorFlow's own
declarations in a process that has both. Fields that nobody here needs are left out, as protobuf allows.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "tensorflow.ProfilerService"

# Message: field: (number, type). A type that begins with a capital letter is a message of this table.
_MESSAGES = {
    "ProfileOptions": {
        "include_dataset_ops": (1, "bool"),
        "host_tracer_level": (2, "uint32"),
        "device_tracer_level": (3, "uint32"),
        "version": (5, "uint32"),
        "enable_hlo_proto": (7, "bool"),
        "start_timestamp_ns": (8, "uint64"),
        "duration_ms": (9, "uint64"),
    },
    "ProfileRequest": {
        "duration_ms": (1, "uint64"),
        "max_events": (2, "uint64"),
        "opts": (4, "ProfileOptions"),
        "repository_root": (5, "string"),
        "session_id": (6, "string"),
        "host_name": (7, "string"),
        "emit_xspace": (9, "bool"),
    },
    # The trace is a message of many parts (XSpace), kept as its bytes, which look the same on the wire.
    "ProfileResponse": {"empty_trace": (7, "bool"), "xspace": (8, "bytes")},
    "TerminateRequest": {"session_id": (1, "string")},
    "TerminateResponse": {},
    "MonitorRequest": {
        "duration_ms": (1, "uint64"),
        "monitoring_level": (2, "int32"),
        "timestamp": (3, "bool"),
    },
    "MonitorResponse": {"data": (1, "string")},
}


def _declare() -> descriptor_pb2.FileDescriptorProto:
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="torch_xla/profiler_service.proto", package="tensorflow", syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields.items():
            declared = message.field.add(name=field, number=number, label=field_type.LABEL_OPTIONAL)
            if kind in _MESSAGES:
                declared.type = field_type.TYPE_MESSAGE
                declared.type_name = f".tensorflow.{kind}"
            else:
                declared.type = getattr(field_type, f"TYPE_{kind.upper()}")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.Add(_declare())


def _message(name: str) -> type:
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"tensorflow.{name}"))


ProfileOptions = _message("ProfileOptions")
ProfileRequest = _message("ProfileRequest")
ProfileResponse = _message("ProfileResponse")
TerminateRequest = _message("TerminateRequest")
TerminateResponse = _message("TerminateResponse")
MonitorRequest = _message("MonitorRequest")
MonitorResponse = _message("MonitorResponse")
