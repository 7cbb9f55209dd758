"""CSV, aligned and space-separated reports, byte by byte."""

import csv

import numpy as np
import pytest

from fastprof.errors import FastprofError
from fastprof.model.columns import Ints
from fastprof.writers import COLUMNS as TABLE
from fastprof.writers.width import WidthError
from support.real_data import real
from support.report_columns import COLUMNS, report, values, without_rows

ALL = ",".join(column.key for column in TABLE[:20])


def test_csv_quotes_every_field_and_doubles_the_quotes_in_one():
    assert report(ALL, "csv").splitlines() == [
        '"Idx","SeqId","AltSeqId","TId","Layer","Trace","Direction","Sub","Module","Op","Kernel",'
        '"Params","Sil(ns)","TC","Device","Stream","Grid","Block","FLOPs","Bytes"',
        '"1","65","-","3940300608","a:b","/x/t.py:1,/x/u v.py:22","fprop","0",'
        '"torch.nn.functional","linear","sgemm_128","M=1,""x"",","6624","1","0","7","640,1,1",'
        '"128,1,1","0","1125600"',
        '"2","-","-","na","-","-","bprop","1","Tensor","__mul__","","na=na,","0","0","1","7","na",'
        '"na","na","na"',
        '"3","1,2","-","7","say ""x"":é層","na","na","na","na","na","vec<é>","na",'
        '"9223372036854775807","-","na","7","2147483647,65535,65535","1024,1,1","9317840000","0"',
        '"4","123456789","-5","8","na","t.py:310","fprop","12345","","a b\tc","na","T=[(2, 3)]",'
        '"na","na","10000","7","1,2,3","1,2,3","1","-9223372036854775808"',
    ]


def test_csv_lines_are_those_of_pyprof():
    head = real("pyprof/golden/lm_v100_nvprof.pyprof311.csv").read_text().splitlines(True)[:2]
    (row,) = csv.DictReader(head)
    columns = dict(COLUMNS)
    for column in TABLE[:20]:
        columns[column.key] = values(row[column.header])
    columns["layer"], columns["trace"] = values(()), values(tuple(row["Trace"].split(",")))
    columns["seq"], columns["altseq"] = Ints(np.array([65])), Ints(np.array([-1]))
    assert report(ALL, "csv", columns=columns) == "".join(head)


def test_spaces_separate_as_many_words_on_every_line():
    lines = report(ALL, "spaces").splitlines()
    assert {len(line.split(" ")) for line in lines} == {20}
    assert lines[0].split(" ") == [column.header for column in TABLE[:20]]
    assert lines[2] == "2 - - na - - bprop 1 Tensor __mul__ - na=na, 0 0 1 7 na na na na"
    assert lines[4] == (
        "4 123456789 -5 8 na t.py:310 fprop 12345 - a_b_c na T=[(2,_3)] na na 10000 7 1,2,3 1,2,3 "
        "1 -9223372036854775808"
    )


def test_aligned_columns_cut_text_and_never_numbers():
    assert report("idx,seq,layer,sub,grid,sil", "width", 49).splitlines() == [
        "Idx     SeqId   Layer      Sub Grid         Sil(ns)   ",
        "      1 65      a:b          0 640,1,1            6624",
        "      2 -       -            1 na                    0",
        '      3 1,2     say "x":é層  na 2147483647,6 9223372036854775807',
        "      4 1234567 na         12345 1,2,3                na",
    ]


def test_aligned_traces_show_the_last_frame_without_its_directory():
    assert report("trace,dir", "width", 30).splitlines() == [
        "Trace                     Direc",
        "u v.py:22                 fprop",
        "-                         bprop",
        "na                        na   ",
        "t.py:310                  fprop",
    ]


def test_names_and_paths_are_cut_on_the_left():
    columns = {
        "layer": values(("model", "layers.0", "mlp"), ("model", "head"), ()),
        "trace": values(("/x/a_rather_long_name_of_a_file.py:310",), (), None),
        "line": values("/home/me/projects/net/train.py:62 main", "t.py:1", None),
        "op": values("scaled_dot_product_attention", "mm", None),
    }
    assert report("layer,trace,line,op", "width", 75, columns).splitlines()[1:] == [
        "…ers.0:mlp …ng_name_of_a_file.py:310 …cts/net/train.py:62 main scaled_dot_prod",
        "model:head -                         t.py:1                    mm             ",
        "-          na                        na                        na             ",
    ]


def test_without_kernel_and_params_what_is_left_goes_to_other_long_texts():
    columns = {
        "layer": values(("model", "layers.0", "mlp")),
        "line": values("/home/me/projects/net/train.py:62 main"),
        "op": values("scaled_dot_product_attention"),
        "kernel": values("sgemm"),
    }
    assert report("layer,line,op", "width", 80, columns).splitlines()[1] == (
        "model:layers.0:mlp        /home/me/projects/net/train.py:62 main   scaled_dot_prod"
    )
    assert report("layer,op,kernel", "width", 50, columns).splitlines()[1] == (
        "…ers.0:mlp scaled_dot_prod " + "sgemm".ljust(25)
    )


def test_what_is_left_of_the_width_is_shared_by_kernel_and_params():
    assert report("idx,kernel,params,sub", "width", 21).splitlines() == [
        "Idx     Kerne Param Sub",
        '      1 sgemm M=1,"   0',
        "      2       na=na   1",
        "      3 vec<é na     na",
        "      4 na    T=[(2 12345",
    ]


def test_what_is_left_of_the_width_goes_to_the_one_present():
    assert report("kernel,sub", "width", 9).splitlines()[1] == "sgemm_   0"
    assert report("sub,params", "width", 9).splitlines()[1] == '  0 M=1,"x'


def test_nothing_left_of_the_width_leaves_kernel_and_params_empty():
    assert report("idx,kernel", "width", 7).splitlines()[:2] == ["Idx     ", "      1 "]


def test_breaks_in_a_name_do_not_break_aligned_lines():
    columns = {"op": values("a\nb\tc\r\nd")}
    assert report("op", "width", 15, columns).splitlines()[1] == "a b c  d       "


def test_too_small_a_width_says_the_least_one():
    with pytest.raises(WidthError) as caught:
        report("idx,dir,sub,mod,op,kernel,params,sil", "width", 54)
    assert str(caught.value) == (
        "width 54 is too small: idx,dir,sub,mod,op,kernel,params,sil need at least 55"
    )
    assert isinstance(caught.value, FastprofError)
    assert report("idx,dir,sub,mod,op,kernel,params,sil", "width", 55).count("\n") == 5


def test_a_report_without_rows_has_its_header():
    empty = without_rows()
    assert report("idx,grid", "csv", columns=empty) == '"Idx","Grid"\n'
    assert report("idx,seq,op", "spaces", columns=empty) == "Idx SeqId Op\n"
    assert report("idx,layer", "width", 17, empty) == "Idx     Layer     \n"


def test_bytes_that_are_no_utf8_come_out_as_they_came_in(tmp_path):
    from fastprof.writers import write_report

    columns = {"op": values("a\udcffb", "half \ud800 pair")}
    with open(tmp_path / "out", "wb") as file:
        write_report(columns, "op", "csv", file)
    assert (tmp_path / "out").read_bytes() == b'"Op"\n"a\xffb"\n"half ? pair"\n'


def test_a_column_as_long_as_no_other_is_refused():
    with pytest.raises(ValueError, match=r"not \[n_rows\]"):
        report("idx,op", "csv", columns={"idx": Ints(np.arange(3)), "op": values("a")})
