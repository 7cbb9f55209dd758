"""Read the plain data in a file of Python's module for serialisation; nothing in it is executed.

Accepted: dict with text keys, list, tuple, str, bytes, int, float, bool, None, and references to
earlier values, in protocols 2 to 5. Instructions that import, call or construct are refused.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from fastprof.errors import BadInputError

# The longest integer in bytes, and the deepest nesting of open containers.
cdef int64_t _LONGEST_INT = 16
cdef int64_t _DEEPEST = 64

_NAMES = {
    "c": "imports an object", "\x93": "imports an object", "i": "creates an object",
    "R": "calls a function", "o": "creates an object", "\x81": "creates an object",
    "\x92": "creates an object", "b": "sets the state of an object",
    "P": "refers to an external object", "Q": "refers to an external object",
    "\x82": "imports an object", "\x83": "imports an object", "\x84": "imports an object",
}


cdef class _Machine:
    """The values read so far: a stack, the starts of open containers, and the memo."""
    cdef const uint8_t *data
    cdef int64_t size, at
    cdef list stack, marks, memo
    cdef str name

    def __cinit__(self, const uint8_t[::1] data, str name):
        self.data = &data[0] if data.shape[0] else NULL
        self.size, self.at, self.name = data.shape[0], 0, name
        self.stack, self.marks, self.memo = [], [], []

    cdef object damaged(self, str what):
        return BadInputError(
            f"{self.name}: damaged at byte {self.at}: {what}; save the snapshot again")

    cdef const uint8_t *take(self, uint64_t n) except NULL:
        """The next n bytes."""
        if n > <uint64_t>(self.size - self.at):
            raise self.damaged(f"expected {n} more bytes, found {self.size - self.at}")
        self.at += <int64_t>n
        return self.data + self.at - n

    cdef uint64_t number(self, int n) except? 0:
        """The next n bytes as a little-endian number."""
        cdef const uint8_t *bytes = self.take(n)
        cdef uint64_t value = 0
        for i in range(n):
            value |= <uint64_t>bytes[i] << (8 * i)
        return value

    cdef object text(self, int n):
        cdef uint64_t length = self.number(n)
        cdef const char *bytes = <const char *>self.take(length)
        try:
            return PyUnicode_DecodeUTF8(bytes, <int64_t>length, "surrogatepass")
        except UnicodeDecodeError:
            raise self.damaged("a text that is not UTF-8") from None

    cdef object blob(self, int n):
        cdef uint64_t length = self.number(n)
        return PyBytes_FromStringAndSize(<const char *>self.take(length), <int64_t>length)

    cdef object long_int(self, int n):
        cdef uint64_t length = self.number(n)
        if length > <uint64_t>_LONGEST_INT:
            raise self.damaged(f"an integer of {length} bytes, expected at most {_LONGEST_INT}")
        return int.from_bytes(PyBytes_FromStringAndSize(
            <const char *>self.take(length), <int64_t>length), "little", signed=True)

    cdef object decimal(self):
        """The next 8 bytes as a big-endian floating-point number."""
        cdef const uint8_t *bytes = self.take(8)
        cdef uint64_t bits = 0
        cdef double value
        for i in range(8):
            bits = bits << 8 | bytes[i]
        memcpy(&value, &bits, 8)
        return value

    cdef object pop(self):
        cdef int64_t least = self.marks[len(self.marks) - 1] if self.marks else 0
        if len(self.stack) <= least:
            raise self.damaged("an instruction without a value")
        return self.stack.pop()

    cdef object top(self):
        if not self.stack:
            raise self.damaged("an instruction without a value")
        return self.stack[len(self.stack) - 1]

    cdef list since_mark(self):
        """Remove and return the values since the last mark."""
        if not self.marks:
            raise self.damaged("the end of a container without a start")
        cdef int64_t start = self.marks.pop()
        cdef list values = self.stack[start:]
        del self.stack[start:]
        return values

    cdef int mark(self) except -1:
        if len(self.marks) >= _DEEPEST:
            raise self.damaged(f"containers nested deeper than {_DEEPEST}")
        self.marks.append(len(self.stack))
        return 0

    cdef int put(self, object items) except -1:
        """Add pairs of key and value to the dict below."""
        cdef object target = self.top()
        if type(target) is not dict or len(items) % 2:
            raise self.damaged("pairs of key and value outside a dict")
        for i in range(0, len(items), 2):
            if type(items[i]) is not str:
                raise self.damaged("a key of a dict that is no text")
            (<dict>target)[items[i]] = items[i + 1]
        return 0

    cdef int append(self, object items) except -1:
        cdef object target = self.top()
        if type(target) is not list:
            raise self.damaged("items outside a list")
        (<list>target).extend(items)
        return 0

    cdef int remember(self, uint64_t place) except -1:
        if place == <uint64_t>len(self.memo):
            self.memo.append(self.top())
        elif place < <uint64_t>len(self.memo):
            self.memo[place] = self.top()
        else:
            raise self.damaged(f"reference {place}, expected at most {len(self.memo)}")
        return 0

    cdef int recall(self, uint64_t place) except -1:
        if place >= <uint64_t>len(self.memo):
            raise self.damaged("a reference to no earlier value")
        self.stack.append(self.memo[place])
        return 0

    cdef int protocol(self, uint64_t version) except -1:
        if version > 5:
            raise self.damaged(f"protocol {version}, expected 2 to 5")
        return 0

    cdef object tuple_of(self, int n):
        values = [self.pop() for _ in range(n)]
        values.reverse()
        return tuple(values)

    cdef object refused(self, uint8_t code):
        what = _NAMES.get(chr(code))
        if what is None:
            return self.damaged(f"unknown instruction {code:#04x}")
        if code == 0x93 and len(self.stack) >= 2 and type(self.top()) is str:
            what = f"imports {f'{self.stack[len(self.stack) - 2]}.{self.top()}'[:80]!a}"
        return BadInputError(
            f"{self.name}: refused, since the file {what} at byte {self.at - 1}; a memory "
            "snapshot of torch contains only plain data")

    cdef bint step_value(self, uint8_t code) except -1:
        """Execute an instruction that adds a value; 0 for another one."""
        cdef object value
        if code == 0x8c:
            value = self.text(1)
        elif code == b"X":
            value = self.text(4)
        elif code == 0x8d:
            value = self.text(8)
        elif code == b"K":
            value = self.number(1)
        elif code == b"M":
            value = self.number(2)
        elif code == b"J":
            value = <int32_t>self.number(4)
        elif code == 0x8a:
            value = self.long_int(1)
        elif code == 0x8b:
            value = self.long_int(4)
        elif code == b"G":
            value = self.decimal()
        elif code == b"N":
            value = None
        elif code == 0x88:
            value = True
        elif code == 0x89:
            value = False
        elif code == b"}":
            value = {}
        elif code == b"]":
            value = []
        elif code == b")":
            value = ()
        elif code == b"t":
            value = tuple(self.since_mark())
        elif 0x85 <= code <= 0x87:
            value = self.tuple_of(code - 0x84)
        elif code == b"C":
            value = self.blob(1)
        elif code == b"B":
            value = self.blob(4)
        elif code == 0x8e:
            value = self.blob(8)
        else:
            return False
        self.stack.append(value)
        return True

    cdef bint step(self) except -1:
        """Execute the next instruction; 0 for the last one."""
        cdef uint8_t code = self.take(1)[0]
        if code == b"h":
            self.recall(self.number(1))
        elif code == b"j":
            self.recall(self.number(4))
        elif self.step_value(code):
            return True
        elif code == 0x94:
            self.remember(len(self.memo))
        elif code == b"q":
            self.remember(self.number(1))
        elif code == b"r":
            self.remember(self.number(4))
        elif code == b"(":
            self.mark()
        elif code == b"u":
            self.put(self.since_mark())
        elif code == b"e":
            self.append(self.since_mark())
        elif code == b"a":
            value = self.pop()
            self.append((value,))
        elif code == b"s":
            value = self.pop()
            self.put((self.pop(), value))
        elif code == b"0":
            self.pop()
        elif code == 0x80:
            self.protocol(self.number(1))
        elif code == 0x95:
            self.number(8)
        elif code == b".":
            return False
        else:
            raise self.refused(code)
        return True


def load(const uint8_t[::1] data not None, str name):
    """The value in `data`.

    name : the file in messages

    Raises
    ------
    BadInputError
        The data is cut off or damaged, or contains more than plain data.
    """
    machine = _Machine(data, name)
    while machine.step():
        pass
    if len(machine.stack) != 1 or machine.marks:
        raise machine.damaged(f"expected one value at the end, found {len(machine.stack)}")
    return machine.stack[0]
