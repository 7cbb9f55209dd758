"""Tests that the oldest torch cannot run: they use what later ones have added."""

import pytest

NOT_IN_2_3 = {
    "no with of an object in compiled code": (
        "test_compiled_whole_and_once_whoever_listens[aot_eager]",
        "test_what_was_compiled_before_init_is_compiled_once_more_and_never_again",
        "test_explain_finds_one_graph_and_no_breaks",
        "test_gradients_of_compiled_modules_and_of_compiled_functions",
        "test_a_compiled_model_with_layers_is_whole",
        "test_exported_programs_are_the_same",
        "test_a_timer_made_in_compiled_code_leaves_one_graph_and_does_nothing",
    ),
    "modules within a compiled one run, and have layers": (
        "test_compiled_models_keep_their_graph_and_have_one_layer",
    ),
    "no torch.compiler.set_stance": (
        "test_parts_of_a_compiled_model_have_their_own_names_where_the_compiler_is_off",
    ),
    "no torch.library.custom_op": (
        "test_operators_have_markers_with_their_own_names[a tool takes ranges]",
        "test_operators_have_markers_with_their_own_names[the profiler records]",
        "test_results_errors_and_overrides_are_the_same",
    ),
    "no torch.is_autocast_enabled of a device": (
        "test_gradients_and_values_are_the_same[mixed_precision_and_a_scaler]",
    ),
    "no fused optimizers on the CPU": (
        "test_gradients_and_values_are_the_same[optimizers_of_all_kinds]",
    ),
    "no arguments of _RecordFunctionFast": (
        "test_markers_layers_and_lines_of_the_users_are_read_from_what_torch_wrote[True]",
    ),
    "no torch.nn.Buffer": ("test_tensors_of_all_kinds_compute_the_same[parameters_and_buffers]",),
    "no torch.distributed.tensor.DTensor": ("test_distributed_tensors_compute_the_same",),
    "no torch.distributed.fsdp.fully_shard": (
        "test_processes_that_train_together_get_the_same_numbers",
    ),
    "not all of the tests that it runs": (
        "test_the_tests_of_this_folder_pass_with_a_tool_and_leave_no_range_open",
    ),
}


def pytest_collection_modifyitems(items):
    try:
        from fastprof.annotate import TORCH
    except ImportError:  # no torch
        return
    if TORCH >= (2, 4):
        return
    missing = {name: what for what, names in NOT_IN_2_3.items() for name in names}
    for item in items:
        if item.name in missing:
            item.add_marker(pytest.mark.skip(reason=f"torch 2.3: {missing[item.name]}"))
