"""Programs that use nvtx, recorded by a real consumer and read by fastprof."""

import ctypes
import os
import signal

import pytest

import fastprof
from fastprof.cli import main
from fastprof.model.markers import Kind
from support import nsys_schemas, nvtx_recorder, processes
from support.nvtx_read_back import assert_agrees, read_back
from support.nvtx_tool import library

TYPE = nsys_schemas.EVENT_TYPES


def of_type(recording, name):
    return [row for row in recording.rows if row["eventType"] == TYPE[name]]


def test_nested_ranges_stand_inside_each_other(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        nvtx.push_range("outer")
        nvtx.push_range("first")
        nvtx.push_range("innermost")
        nvtx.pop_range()
        nvtx.pop_range()
        nvtx.push_range("second")
        nvtx.pop_range()
        nvtx.pop_range()
        nvtx.push_range("after")
        nvtx.pop_range()
    """)
    assert recording.trees() == [("outer", [("first", ["innermost"]), "second"]), "after"]
    assert [range_.depth for range_ in recording.ranges] == [0, 1, 2, 1, 0]
    assert {range_.kind for range_ in recording.ranges} == {"push_pop"}
    assert recording.open_ranges == [] and recording.stray == 0
    starts = [row["start"] for row in recording.rows]
    assert starts == sorted(starts) and len(set(starts)) == len(starts)
    assert [range_.depth for range_ in assert_agrees(recording)] == [0, 1, 2, 1, 0]


def test_annotate_records_bodies_calls_and_exceptions(record_nvtx):
    recording = record_nvtx("""
        import nvtx

        @nvtx.annotate()
        def function(n):
            if n:
                return function(n - 1)
            raise ValueError(n)

        try:
            with nvtx.annotate("body", color="red", category="mine", payload=7):
                function(2)
        except ValueError as error:
            print("caught", error)
        with nvtx.annotate("next"):
            pass
    """)
    assert recording.stdout == "caught 0\n"
    assert recording.trees() == [("body", [("function", [("function", ["function"])])]), "next"]
    body = recording.one("body")
    assert (body.category, body.payload, body.color) == ("mine", 7, 0xFF0000)
    assert recording.open_ranges == [] and recording.stray == 0
    assert_agrees(recording)


def test_texts_that_were_registered_are_told_by_number(record_nvtx):
    recording = record_nvtx(
        """
        import ctypes, sys
        import nvtx
        with nvtx.annotate("registered"), nvtx.annotate("registered"):
            pass
        core = ctypes.CDLL(sys.argv[1])
        core.nvtxRangePushA(b"plain")
        core.nvtxRangePop()
        """,
        str(nvtx_recorder.core_api()),
    )
    first, second, plain = (row for row in recording.rows if row["eventType"] == 59)
    assert first["text"] is second["text"] is None
    assert first["textId"] == second["textId"] is not None
    assert (plain["text"], plain["textId"]) == ("plain", None)
    assert [range_.registered for range_ in recording.ranges] == [True, True, False]
    assert [range_.text for range_ in assert_agrees(recording)] == ["registered"] * 2 + ["plain"]


def test_domains_have_stacks_and_categories_of_their_own(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        nvtx.push_range("A", domain="one", category="seen")
        nvtx.push_range("B", domain="two", category="other")
        nvtx.push_range("C")
        nvtx.pop_range(domain="one")
        nvtx.pop_range()
        nvtx.pop_range(domain="two")
    """)
    a, b, c = recording.ranges
    assert (a.domain, b.domain, c.domain) == ("one", "two", None)
    assert (a.category, b.category, c.category) == ("seen", "other", None)
    assert a.end < c.end < b.end
    assert list(recording.domains.values()) == ["one", "two"]
    assert recording.trees() == [("A", [("B", ["C"])])]
    assert_agrees(recording)


def test_ranges_that_end_on_another_thread_are_phases(record_nvtx):
    recording = record_nvtx("""
        import threading
        import nvtx
        moved = nvtx.start_range("moved")
        stays = nvtx.start_range("stays", domain="mine")
        nvtx.start_range("never")
        with nvtx.annotate("inside"):
            thread = threading.Thread(target=nvtx.end_range, args=(moved,))
            thread.start()
            thread.join()
        nvtx.end_range(stays)
        print(threading.get_native_id(), thread.native_id)
    """)
    here, there = map(int, recording.stdout.split())
    moved, stays, never = (recording.one(text) for text in ("moved", "stays", "never"))
    assert (moved.thread, moved.end_thread, moved.moved) == (here, there, True)
    assert (stays.thread, stays.end_thread, stays.moved) == (here, here, False)
    assert (never.end, never.end_thread, never.kind) == (None, None, "start_end")
    assert len({moved.range_id, stays.range_id, never.range_id}) == 3
    assert recording.trees() == [("stays", [("never", ["inside"])])]
    assert_agrees(recording)


def test_marks_are_no_ranges(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        with nvtx.annotate("range"):
            nvtx.mark("mark", payload=2.5)
            nvtx.get_domain("mine").mark(message="another")
    """)
    assert [(mark.text, mark.domain, mark.payload) for mark in recording.marks] == [
        ("mark", None, 2.5),
        ("another", "mine", None),
    ]
    assert recording.one("range").start < recording.marks[0].start < recording.one("range").end
    assert len(of_type(recording, "NvtxMark")) == 2
    assert [range_.text for range_ in assert_agrees(recording)] == ["range"]


def test_unclosed_ranges_never_end(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        nvtx.push_range("forgotten")
        with nvtx.annotate("closed"):
            pass
        nvtx.push_range("forgotten, too")
    """)
    assert [range_.text for range_ in recording.open_ranges] == ["forgotten", "forgotten, too"]
    assert recording.trees() == [("forgotten", ["closed", "forgotten, too"])]
    assert [range_.end is None for range_ in assert_agrees(recording)] == [True, False, True]


def test_pops_that_end_nothing_are_counted(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        with nvtx.annotate("only"):
            pass
        nvtx.pop_range()
        nvtx.pop_range(domain="mine")
        nvtx.end_range((12345, nvtx.get_domain().handle))
    """)
    assert recording.stray == 3
    assert recording.texts() == ["only"] and recording.open_ranges == []


def test_threads_do_not_mix(record_nvtx):
    recording = record_nvtx("""
        import threading
        import nvtx
        n = 4
        barrier = threading.Barrier(n)

        def work(name):
            with nvtx.annotate(name):
                for i in range(200):
                    barrier.wait()
                    with nvtx.annotate(f"{name}.{i}"), nvtx.annotate("same"):
                        pass

        threads = [threading.Thread(target=work, args=(f"T{t}",)) for t in range(n)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(*(thread.native_id for thread in threads))
    """)
    threads = list(map(int, recording.stdout.split()))
    assert len(recording.ranges) == 4 * 401
    for number, thread in enumerate(threads):
        ((process, root),) = [
            (key[0], roots) for key, roots in recording.forest.items() if key[1] == thread
        ]
        inside = [(f"T{number}.{i}", ["same"]) for i in range(200)]
        assert [range_.tree() for range_ in root] == [(f"T{number}", inside)]
        assert len(recording.texts(thread)) == 401
        assert {range_.process for range_ in recording.ranges} == {process}
    assert len(assert_agrees(recording)) == 4 * 401


def test_a_forked_child_is_a_process_of_its_own(record_nvtx):
    recording = record_nvtx("""
        import os
        import nvtx
        nvtx.mark("early", domain="mine")
        with nvtx.annotate("around", domain="mine"):
            child = os.fork()
            with nvtx.annotate("both", domain="mine"):
                if not child:
                    with nvtx.annotate("only child", domain="new"):
                        pass
        if child:
            assert os.waitpid(child, 0)[1] == 0
            with nvtx.annotate("only parent", domain="other"):
                print(os.getpid(), child)
    """)
    parent, child = map(int, recording.stdout.split())
    (parent_roots,) = (roots for key, roots in recording.forest.items() if key[0] == parent)
    (child_roots,) = (roots for key, roots in recording.forest.items() if key[0] == child)
    assert [root.tree() for root in parent_roots] == [("around", ["both"]), "only parent"]
    assert [root.tree() for root in child_roots] == [("both", ["only child"])]
    assert {range_.domain for range_ in recording.ranges} == {"mine", "new", "other"}
    assert recording.one("only child").domain == "new"
    assert recording.open_ranges == []
    assert recording.stray == 1  # the end of "around" in the child
    assert_agrees(recording)


def test_programs_that_a_program_starts_are_recorded_too(record_nvtx):
    recording = record_nvtx("""
        import subprocess, sys
        import nvtx
        with nvtx.annotate("starts"):
            code = "import nvtx\\nwith nvtx.annotate('started'): pass"
            subprocess.run([sys.executable, "-c", code], check=True)
    """)
    assert sorted(recording.texts()) == ["started", "starts"]
    assert recording.one("starts").process != recording.one("started").process
    assert_agrees(recording)


def test_a_process_that_becomes_another_program_is_recorded_on(record_nvtx):
    recording = record_nvtx("""
        import os, sys
        import nvtx
        if len(sys.argv) == 1:
            nvtx.push_range("before")
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        with nvtx.annotate("after"):
            print(os.getpid())
    """)
    assert recording.texts() == ["before", "after"]
    assert {range_.process for range_ in recording.ranges} == {int(recording.stdout)}
    assert [range_.text for range_ in recording.open_ranges] == ["before"]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("os._exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("ctypes.string_at(0)", -signal.SIGSEGV),
    ],
)
def test_nothing_is_lost_however_a_program_ends(record_nvtx, end, status):
    source = f"""
        import ctypes, os, resource, signal
        import nvtx
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for _ in range(5000):
            with nvtx.annotate("closed"):
                pass
        with nvtx.annotate("last"):
            {end}
    """
    recording = record_nvtx(source, status=status)
    assert recording.texts() == ["closed"] * 5000 + ["last"]
    assert [range_.text for range_ in recording.open_ranges] == ["last"]
    assert_agrees(recording)


TEXTS = ["", " ", "Größe ≤ 10 µs — 層🔥", "quote's \"\\ and \n lines", "layer:block:1", "\x01\x02"]


def test_any_text_comes_through(record_nvtx):
    recording = record_nvtx(f"""
        import nvtx
        for text in {TEXTS!r}:
            with nvtx.annotate(text):
                pass
    """)
    assert recording.texts() == TEXTS
    read = read_back(recording.path)
    assert [range_.meaning.kind == Kind.LAYER for range_ in read] == [
        text.startswith("layer:") for text in TEXTS
    ]
    assert_agrees(recording)


def test_a_megabyte_of_text_comes_through(record_nvtx):
    recording = record_nvtx(
        """
        import ctypes, sys
        import nvtx
        long = "{'mod': 'm', " + "x" * (1 << 20)
        with nvtx.annotate(long):
            core = ctypes.CDLL(sys.argv[1])
            core.nvtxRangePushA(long.encode())
            core.nvtxRangePushA(b"short")
        """,
        str(nvtx_recorder.core_api()),
    )
    long = "{'mod': 'm', " + "x" * (1 << 20)
    assert recording.trees() == [(long, [(long, ["short"])])]
    assert_agrees(recording)


def test_thousands_of_ranges_come_through(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        domain = nvtx.get_domain("mine")
        attributes = [domain.get_event_attributes(f"range {i}") for i in range(100)]
        for _ in range(300):
            for one in attributes:
                domain.push_range(one)
            for _ in attributes:
                domain.pop_range()
    """)
    assert recording.texts() == [f"range {i}" for i in range(100)] * 300
    assert [range_.depth for range_ in recording.ranges] == [*range(100)] * 300
    assert len(assert_agrees(recording)) == 30_000


def test_every_function_of_the_core_is_recorded(record_nvtx):
    recording = record_nvtx(
        """
        import ctypes, sys, threading
        core = ctypes.CDLL(sys.argv[1])
        core.nvtxRangeStartA.restype = core.nvtxRangeStartW.restype = ctypes.c_uint64
        core.nvtxDomainCreateW.restype = core.nvtxDomainRegisterStringW.restype = ctypes.c_void_p
        wide = "größer ≤ 層🔥"
        levels = [core.nvtxRangePushA(b"plain"), core.nvtxRangePushW(wide)]
        for start, text in ((core.nvtxRangeStartA, b"start"), (core.nvtxRangeStartW, wide + "!")):
            core.nvtxRangeEnd(ctypes.c_uint64(start(text)))
        core.nvtxMarkA(b"mark")
        core.nvtxMarkW(wide)
        levels += [core.nvtxRangePop(), core.nvtxRangePop(), core.nvtxRangePop()]
        print(*levels)
        core.nvtxNameCategoryA(1, b"one")
        core.nvtxNameCategoryW(2, wide)
        core.nvtxNameOsThreadA(threading.get_native_id(), b"main")
        core.nvtxNameOsThreadW(77, wide)
        domain = ctypes.c_void_p(core.nvtxDomainCreateW(wide))
        core.nvtxDomainNameCategoryA(domain, 1, b"one of mine")
        core.nvtxDomainRegisterStringW(domain, wide + "?")
        core.nvtxDomainDestroy(domain)
        print(threading.get_native_id())
        """,
        str(nvtx_recorder.core_api()),
    )
    wide = "größer ≤ 層🔥"
    levels, thread = recording.stdout.splitlines()
    assert levels == "0 1 1 0 -2"
    assert recording.trees() == [("plain", [(wide, ["start", wide + "!"])])]
    assert [mark.text for mark in recording.marks] == ["mark", wide]
    assert recording.stray == 1
    categories = of_type(recording, "NvtxCategory")
    assert [(row["text"], row["category"]) for row in categories] == [
        ("one", 1),
        (wide, 2),
        ("one of mine", 1),
    ]
    assert [row["domainId"] for row in categories] == [0, 0, 1]
    named = of_type(recording, "NvtxThread")
    assert [(row["globalTid"] & 0xFFFFFF, row["text"]) for row in named] == [
        (int(thread), "main"),
        (77, wide),
    ]
    assert recording.domains == {1: wide}
    assert [row["domainId"] for row in of_type(recording, "NvtxDomainDestroy")] == [1]
    assert_agrees(recording)
    about = fastprof.open(recording.path).about
    assert about.threads == {(recording.ranges[0].process, int(thread)): "main"}


def test_what_ranges_mean_is_read_back(record_nvtx):
    recording = record_nvtx("""
        import nvtx
        argument = {'mod': 'torch.nn.functional', 'op': 'linear', 'args': [
            {'name': '', 'type': 'tensor', 'shape': (8, 16), 'dtype': 'float32'}]}
        trace = {'traceMarker': ['train.py:310'], 'funcStack': '/<module>/main'}
        torch = "aten::addmm, seq = 7, op_id = 12, sizes = [[8]], input_op_ids = [(5, 0)]"
        with nvtx.annotate("layer:net"), nvtx.annotate(repr(trace)):
            with nvtx.annotate(repr(argument)), nvtx.annotate(torch):
                nvtx.push_range("mine")
    """)
    *_, mine = assert_agrees(recording)
    kinds = [range_.meaning.kind for range_ in mine.chain()]
    assert kinds == [Kind.LAYER, Kind.TRACE, Kind.ARGUMENT, Kind.TORCH, Kind.USER]
    _, trace, argument, torch, _ = mine.chain()
    assert trace.meaning.frames == ("train.py:310",)
    assert (argument.meaning.call.op, argument.meaning.call.args[0].value.shape) == (
        "linear",
        (8, 16),
    )
    assert (torch.seq, torch.op_id, torch.meaning.name) == (7, 12, "aten::addmm")


def test_a_program_without_a_range_gives_an_empty_export(record_nvtx):
    recording = record_nvtx("import nvtx\nprint('done')")
    assert (recording.stdout, recording.ranges, recording.trees()) == ("done\n", [], [])
    assert read_back(recording.path) == []
    assert len(fastprof.open(recording.path)) == 0


def test_fastprof_opens_an_export_without_kernels(record_nvtx, capsys):
    recording = record_nvtx("""
        import nvtx
        with nvtx.annotate("layer:net"):
            nvtx.push_range("forgotten")
    """)
    profile = fastprof.open(recording.path)
    assert (len(profile), profile.warnings, profile.about.format) == (0, [], "nsys")
    assert profile.about.schema_version == nsys_schemas.VERSIONS["2025"][0]
    for command in ("info", "prof", "parse"):
        assert main([command, str(recording.path)]) == 0
    assert "nsys" in capsys.readouterr().out


def test_a_program_that_fails_is_told_with_what_it_printed(record_nvtx):
    with pytest.raises(nvtx_recorder.ProgramFailed, match=r"(?s)ended with 1.*ZeroDivisionError"):
        record_nvtx("1 / 0")


def test_arguments_variables_and_files_reach_a_program(record_nvtx, tmp_path):
    program = tmp_path / "given.py"
    program.write_text("import os, sys, nvtx\nnvtx.push_range(sys.argv[1] + os.environ['GIVEN'])")
    assert record_nvtx(program, "a", env={"GIVEN": "b"}).texts() == ["ab"]


def test_without_the_library_nothing_is_recorded(record_nvtx, tmp_path):
    source = "import nvtx\nprint(type(nvtx.get_domain()).__name__)\nnvtx.push_range('lost')"
    log = tmp_path / "log"
    env = {**os.environ, "FASTPROF_NVTX_LOG": str(log)}
    env.pop("NVTX_INJECTION64_PATH", None)
    ran = processes.python("-c", source, env=env, check=True)
    assert ran.stdout == "DummyDomain\n"
    assert list(tmp_path.iterdir()) == []
    assert record_nvtx(source).stdout == "Domain\n"


def test_without_headers_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(library.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(nvtx_recorder.Unavailable, match="pip install nvidia-nvtx"):
        library.headers()


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(nvtx_recorder.Unavailable, match="no C compiler no-such-compiler"):
        library.library.__wrapped__()


def test_the_library_is_built_once(record_nvtx):
    assert nvtx_recorder.library() is nvtx_recorder.library()
    assert ctypes.CDLL(str(nvtx_recorder.library())).InitializeInjectionNvtx2
