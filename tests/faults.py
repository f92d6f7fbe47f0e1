"""Everything that can go wrong, what the user sees then, and the tests that hold it.

    python -m tests.faults

writes the page of the documentation from this table; a test compares the two, and looks whether
every test that is named here exists.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "faults.md"
INTRODUCTION = (
    "# What happens when…\n\n"
    "Every error is one sentence that names the file, line or row, the option and the fix. Reports "
    "are never half-written, and finished runs are never lost. "
    "**Refused** means exit status 4, before any worker is started and any request is sent. "
    "**Errored** means that this run alone has no score: it is an error (or, where the agent's own "
    "code is at fault, a failure), the others go on, and the exit status is 1.\n"
)


@dataclass(frozen=True)
class Fault:
    """One thing that can go wrong."""

    what: str
    seen: str
    """What the user sees."""
    tests: Sequence[str] = ()
    """`path below tests::name`, or `path::Class::name`; the first one's path may be left out."""
    untested: str = ""
    """Why there can be no test; not for users."""


CALLS = "osmosis_platform/test_every_call.py"
DATA = "pytest_osmosis/dataset/test_dataset.py"
BAD_DATA = "pytest_osmosis/acceptance/test_bad_datasets.py"
REFUSED_DATA = f"{BAD_DATA}::test_what_is_wrong_with_a_dataset_is_one_sentence"
BAD_CODE = "pytest_osmosis/acceptance/test_bad_code.py"
REFUSED_CODE = f"{BAD_CODE}::test_code_that_cannot_be_used_is_told_before_any_request"
UNRULY = f"{BAD_CODE}::test_unruly_code_costs_its_own_run_alone"
BLOCKING = "pytest_osmosis/acceptance/test_blocking.py"
SCORING = "pytest_osmosis/user_code/test_eval_function.py"
IMPORTING = "pytest_osmosis/user_code/test_import_object.py"
BAD_END = "pytest_osmosis/acceptance/test_bad_endpoints.py"
FAILS = f"{BAD_END}::test_every_failure_costs_its_own_run_alone_and_is_told_in_words"
ANSWERS = f"{BAD_END}::test_unusual_answers_are_answers"
AGAIN = f"{BAD_END}::test_what_passes_is_tried_again_and_counted"
STOPS = f"{BAD_END}::test_what_refuses_every_row_stops_the_session_at_the_first"
HTTP = "osmosis_ai/models/test_openai.py"
POOL = "osmosis_ai/models/transport/test_client.py"
OPTIONS = "pytest_osmosis/acceptance/test_options.py"
SESSIONS = "pytest_osmosis/acceptance/test_which_sessions.py"
CREDENTIALS = "osmosis_cli/credentials/test_file.py"
CHECKOUT = "osmosis_platform/execution/test_checkout.py"
BUILD = "osmosis_platform/environments/test_build.py"
PROGRAMS = "osmosis_executors/test_local.py"
EXECUTED = "osmosis_platform/execution/test_execute.py"
EXECUTIONS = "osmosis_platform/execution/test_end_to_end.py"
CLIENT = "osmosis_ai/platform/test_client.py"
SUBMIT = "osmosis_cli/platform/test_submit.py"
GIT = "osmosis_ai/platform/test_git.py"
TRIED = "osmosis_cli/platform/test_preflight.py"
SUBMITTED = "osmosis_cli/platform/test_runs.py"
LOGIN = "osmosis_cli/platform/test_login.py"
READER = "osmosis_cli/credentials/test_store.py"
UPLOAD = "osmosis_cli/platform/test_dataset.py"
SECRET_COMMAND = "osmosis_cli/platform/test_secret.py"
CSV = "pytest_osmosis/dataset/test_csv_file.py"
COLUMNS = "pytest_osmosis/dataset/test_columns.py"
FORMS = "pytest_osmosis/acceptance/test_datasets.py"
WRONG = f"{OPTIONS}::test_a_wrong_input_is_one_sentence_before_any_request"
LOST = "pytest_osmosis/robustness/test_lost_workers.py"
KILL = "pytest_osmosis/robustness/test_kill.py"
SIGNALS = "pytest_osmosis/robustness/test_interruption.py"
RESUME = "pytest_osmosis/acceptance/test_resume.py"
JOURNAL = "pytest_osmosis/storage/test_journal.py"
REPORT = "pytest_osmosis/acceptance/test_report.py"
COLLECT = "pytest_osmosis/acceptance/test_collection.py"
BESIDE = "beside/test_neighbours.py"
AROUND = "pytest_osmosis/acceptance/test_bad_surroundings.py"
BUDGETS = "pytest_osmosis/acceptance/test_budgets_and_pace.py"
SECRET = "osmosis_ai/test_secret.py"
SPELLED = f"{AROUND}::test_a_key_is_nowhere_in_any_spelling"
OUTCOMES = "pytest_osmosis/acceptance/test_outcomes.py"
PARTS = f"{AROUND}::test_the_report_is_the_same_without_parts_of_pytest_and_with_others"
TOOLS = "osmosis_ai/agents/test_tools.py"

FAULTS: dict[str, Sequence[Fault]] = {
    "The dataset": [
        Fault(
            "the file is missing",
            "refused: “no such file”, with the folder it was looked for in",
            [
                REFUSED_DATA,
                f"{DATA}::TestFilesThatCannotBeUsed::"
                "test_a_missing_file_is_told_with_the_folder_it_was_looked_for_in",
            ],
        ),
        Fault(
            "it is a directory",
            "refused: give a .jsonl, .json, .csv or .parquet file",
            [REFUSED_DATA],
        ),
        Fault(
            "it may not be read",
            "refused: permission denied",
            [f"{BAD_DATA}::test_a_dataset_that_may_not_be_read_is_told_without_a_traceback"],
        ),
        Fault(
            "it has no bytes, only blank lines, or no rows",
            "“has no rows”, exit status 5",
            [f"{BAD_DATA}::test_a_dataset_without_rows_is_nothing_to_run"],
        ),
        Fault(
            "its suffix is unknown or missing, or it is compressed",
            "refused with the accepted suffixes; gzip, zstd and Parquet are recognised by content",
            [REFUSED_DATA, f"{DATA}::TestFilesThatCannotBeUsed::test_another_format_is_recognised"],
        ),
        Fault(
            "a line is not JSON",
            "refused with the line as an editor counts it, blank lines included, and the column",
            [
                REFUSED_DATA,
                f"{DATA}::TestWrongRows::test_a_line_that_is_no_row_is_told_with_its_place",
            ],
        ),
        Fault(
            "the last line is torn",
            "refused, with the hint that the file may be incomplete; a whole last line needs no "
            "line end",
            [REFUSED_DATA, f"{BAD_DATA}::test_harmless_forms_are_read"],
        ),
        Fault("an object has one key twice", "refused with line and key", [REFUSED_DATA]),
        Fault(
            "it begins with a byte order mark",
            "read",
            [f"{BAD_DATA}::test_harmless_forms_are_read"],
        ),
        Fault(
            "its lines end in CR LF",
            "read",
            [f"{BAD_DATA}::test_harmless_forms_are_read"],
        ),
        Fault(
            "a string holds U+2028, U+2029, U+0085 or a lone CR",
            "one row",
            [
                f"{BAD_DATA}::"
                "test_odd_characters_in_a_prompt_are_data_and_never_reach_terminal_or_names"
            ],
        ),
        Fault(
            "it is UTF-16 or Latin-1",
            "refused with byte and line; UTF-16 is recognised",
            [REFUSED_DATA],
        ),
        Fault(
            "a line is very long",
            "read once per session, up to 64 MiB; a longer one is refused by its number",
            [
                f"{BAD_DATA}::test_a_long_line_is_one_row",
                f"{DATA}::TestWrongRows::test_a_line_over_the_limit_is_refused_by_number",
            ],
        ),
        Fault("a row is no object", "refused with line and type", [REFUSED_DATA]),
        Fault(
            "a CSV row has too many or too few cells, or a quote that is never closed",
            "refused with the line that it begins at; the other rows are checked too",
            [f"{CSV}::test_wrong_rows_are_named_by_the_line_they_begin_at"],
        ),
        Fault(
            "a CSV file has semicolons, two columns of one name, or another encoding",
            "refused with the line and what to do",
            [f"{CSV}::test_a_file_that_cannot_be_used_is_told"],
        ),
        Fault(
            "a conversation in `messages` is no list of messages, or stands beside a prompt",
            "refused with line and place",
            [
                f"{COLUMNS}::TestPrompts::test_a_wrong_chat_is_told_with_its_place",
                f"{COLUMNS}::TestPrompts::test_messages_beside_a_prompt_are_refused",
            ],
        ),
        Fault(
            "`--osmosis-map` or `--osmosis-rows` names what is not there",
            "refused before any request, with the columns or the number of rows that there are",
            [f"{FORMS}::test_a_wrong_map_or_row_is_one_sentence"],
        ),
        Fault(
            "a column is missing",
            "refused with line, column, the columns there are, and a guess",
            [REFUSED_DATA],
        ),
        Fault(
            "column names differ in case or blanks",
            "read; two that collide are refused",
            [REFUSED_DATA, f"{BAD_DATA}::test_harmless_forms_are_read"],
        ),
        Fault(
            "the ground truth is null, empty or a number",
            "null is none, empty is empty; a number is refused: quote it",
            [REFUSED_DATA, f"{BAD_DATA}::test_harmless_forms_are_read"],
        ),
        Fault(
            "a prompt is null, a list or blank, or the user's is empty",
            "refused with line, column and type",
            [REFUSED_DATA],
        ),
        Fault("a value is NaN, Infinity or 1e999", "refused with the line", [REFUSED_DATA]),
        Fault("a number has thousands of digits", "refused with the line", [REFUSED_DATA]),
        Fault("a value is nested very deeply", "refused: nested too deeply", [REFUSED_DATA]),
        Fault("a string holds half a surrogate pair", "refused with the line", [REFUSED_DATA]),
        Fault(
            "a prompt holds NUL or escape characters",
            "kept as data; never raw on the terminal, in node ids or in JUnit",
            [
                f"{BAD_DATA}::"
                "test_odd_characters_in_a_prompt_are_data_and_never_reach_terminal_or_names"
            ],
        ),
        Fault(
            "two rows are equal, or have one id",
            "equal rows are two rows; an id given twice is refused with both lines",
            [REFUSED_DATA, f"{BAD_DATA}::test_two_equal_rows_are_two_rows"],
        ),
        Fault(
            "it changes between a session and the next, or under one",
            "a new evaluation starts and the header counts the rows that differ; with "
            "`--osmosis-resume` refused; rows that change under a session are errored by name, "
            "and a worker that sees another file is not used",
            [
                f"{RESUME}::test_changed_rows_start_anew_and_are_counted",
                f"{BAD_DATA}::"
                "test_rows_that_change_under_a_session_are_errored_and_the_report_is_written",
                f"{LOST}::test_workers_that_load_other_files_than_were_checked_are_a_usage_error",
            ],
        ),
        Fault(
            "it has a million rows",
            "`--osmosis-offset` and `--osmosis-limit` choose before items are made; an offset past "
            "the end is exit status 5 with the number of rows",
            [
                f"{BAD_DATA}::test_a_million_rows_cost_what_is_asked_for",
                f"{DATA}::TestCost::test_memory_is_a_few_bytes_a_row_whatever_the_rows_hold",
                f"{DATA}::TestNames::"
                "test_names_are_unique_short_and_without_what_node_ids_give_a_meaning",
            ],
        ),
        Fault(
            "a Parquet file is cut short, or bits of it flipped",
            "refused with the file, or a dataset with another digest",
            [
                REFUSED_DATA,
                f"{DATA}::TestParquet::"
                "test_no_flipped_bit_ends_in_anything_but_a_dataset_or_one_message",
            ],
        ),
        Fault(
            "a Parquet column is of a type that JSON lacks",
            "decimals become text, times ISO 8601; bytes and NaN are refused by row and column",
            [REFUSED_DATA, f"{BAD_DATA}::test_parquet_values_become_json_by_one_table"],
        ),
        Fault("a Parquet file has one column twice", "refused by name", [REFUSED_DATA]),
        Fault(
            "pyarrow is not installed",
            "refused, with the command that installs it",
            [f"{BAD_DATA}::test_without_pyarrow_parquet_is_refused_with_the_cure"],
        ),
        Fault(
            "it is a pipe, or standard input",
            "refused: every worker reads it",
            [
                REFUSED_DATA,
                f"{DATA}::TestFilesThatCannotBeUsed::"
                "test_standard_input_is_refused_even_when_it_is_a_file",
            ],
        ),
        Fault(
            "the path is a loop of links, or holds a line end",
            "refused; the path is quoted",
            [REFUSED_DATA],
        ),
    ],
    "The agent and the eval functions": [
        Fault("a name is not `module:attribute`", "refused with the form", [REFUSED_CODE]),
        Fault(
            "a module is missing, or imports one that is",
            "refused; the message says which, with the folders that were searched",
            [
                REFUSED_CODE,
                f"{IMPORTING}::TestNames::"
                "test_a_missing_module_is_told_with_the_folders_and_close_ones",
            ],
        ),
        Fault(
            "a module has a syntax error, raises or exits while it is imported",
            "refused with your own frames alone",
            [REFUSED_CODE],
        ),
        Fault(
            "an import never ends",
            "refused after a deadline, with the line where it was",
            [f"{BAD_CODE}::test_an_import_that_does_not_end_is_told_with_its_line"],
        ),
        Fault("an attribute is missing", "refused with close names", [REFUSED_CODE]),
        Fault(
            "a class is named where an instance is needed",
            "made, unless it needs arguments: then refused with their names",
            [REFUSED_CODE, f"{BAD_CODE}::test_every_sort_of_callable_scores_by_its_signature"],
        ),
        Fault(
            "something is not callable, or its first parameter fits nothing",
            "refused with the signature seen and the accepted ones",
            [REFUSED_CODE],
        ),
        Fault(
            "an eval function is a partial, a callable object, or decorated",
            "called and, where it has to be, awaited",
            [
                f"{BAD_CODE}::test_every_sort_of_callable_scores_by_its_signature",
                f"{SCORING}::TestCallables::test_decorated_rewards_work_unmodified",
            ],
        ),
        Fault(
            "a plain function returns an awaitable, or a generator",
            "awaited; a generator is refused",
            [REFUSED_CODE, f"{BAD_CODE}::test_every_sort_of_callable_scores_by_its_signature"],
        ),
        Fault(
            "an eval function returns NaN or infinity",
            "errored, naming function, value and row",
            [f"{BAD_CODE}::test_what_is_no_score_is_an_error_that_names_function_row_and_value"],
        ),
        Fault(
            "an eval function returns a bool, a numpy number, a mapping, None, text or a Decimal",
            "bools and numpy numbers are scores, and so is a mapping with a `score`; anything else "
            "is errored by its type",
            [
                f"{BAD_CODE}::test_what_is_no_score_is_an_error_that_names_function_row_and_value",
                f"{BAD_CODE}::test_every_sort_of_callable_scores_by_its_signature",
                f"{SCORING}::TestScores::test_finite_numbers_are_scores",
                f"{SCORING}::TestReasons::test_any_other_mapping_is_an_error",
            ],
        ),
        Fault(
            "a score is outside 0 … 1",
            "taken as it is, and compared with the threshold",
            [f"{BAD_CODE}::test_every_sort_of_callable_scores_by_its_signature"],
        ),
        Fault(
            "an eval function raises",
            "errored with your frames; the other functions still score, the other rows go on",
            [f"{OUTCOMES}::test_each_run_becomes_what_happened_to_it"],
        ),
        Fault(
            "an eval function or an agent never returns",
            "a deadline ends it: cancelled where it is async, left behind in its thread where it "
            "is not, and interrupted where it holds up the event loop; the function is named",
            [
                UNRULY,
                f"{BAD_CODE}::test_an_eval_function_that_spins_costs_its_own_run_alone",
                f"{BLOCKING}::test_an_agent_that_never_lets_go_is_a_timeout_that_names_its_function",
                f"{BLOCKING}::test_an_agent_that_cannot_be_interrupted_ends_its_process_in_order",
            ],
        ),
        Fault(
            "an agent ignores its cancellation",
            "left behind after a second deadline, and reported so",
            [UNRULY],
        ),
        Fault(
            "an eval function changes what it is given",
            "every function gets its own copy, whatever their order",
            [f"{BAD_CODE}::test_functions_see_the_same_whatever_another_did_to_it"],
        ),
        Fault(
            "code calls `os._exit` or `sys.exit`, or raises KeyboardInterrupt",
            "a lost worker; errored; interrupts the session, once",
            [
                UNRULY,
                f"{BAD_CODE}::test_a_process_that_the_agent_ends_is_told",
                f"{BAD_CODE}::test_an_interrupt_raised_by_an_agent_interrupts_the_session_once",
            ],
        ),
        Fault(
            "code prints or logs without end",
            "beginning and end are kept",
            [f"{BAD_CODE}::test_what_is_printed_without_end_is_kept_by_its_beginning_and_end"],
        ),
        Fault(
            "code changes the working directory, the environment or the random state",
            "reports stay where they belong",
            [
                f"{BAD_CODE}::test_what_code_does_to_its_process_does_not_move_the_reports",
                f"{OPTIONS}::TestPaths::"
                "test_user_code_that_changes_the_directory_does_not_move_the_report",
            ],
        ),
        Fault(
            "code leaves tasks or threads behind",
            "the session ends all the same; a warning names a task that still waits for the model",
            [
                f"{BAD_CODE}::test_what_code_does_to_its_process_does_not_move_the_reports",
                f"{BAD_CODE}::test_a_warning_names_a_task_that_was_left_behind_in_a_model_call",
            ],
        ),
        Fault(
            "an eval function has positional-only parameters or `**kwargs`",
            "called by its signature",
            [f"{BAD_CODE}::test_every_sort_of_callable_scores_by_its_signature"],
        ),
        Fault(
            "an eval function is given twice",
            "refused by name",
            [f"{BAD_CODE}::test_a_function_that_is_given_twice_is_refused"],
        ),
        Fault(
            "nothing scores: `--eval-fn` was forgotten, a judge has no key, `get_tools` gives no "
            "tools",
            "the session stops at the first rollouts, with one message",
            [f"{OUTCOMES}::test_first_rollouts_that_nothing_can_score_stop_the_session"],
        ),
    ],
    "The endpoint": [
        Fault(
            "the port is closed, or the name does not resolve",
            "tried again; when the first three runs end so, the session stops: “cannot reach …”",
            [
                f"{BAD_END}::test_an_endpoint_that_nobody_can_reach_stops_the_session_after_a_few",
                f"{HTTP}::test_a_name_that_does_not_resolve_is_unreachable",
            ],
        ),
        Fault(
            "it goes away in the middle of a session",
            "the session stops after five runs in a row that found nothing at its address, exit "
            "status 1 also where a gate passes; the same command goes on with the runs that are "
            "kept",
            [
                f"{BAD_END}::test_an_endpoint_that_goes_away_stops_the_session_and_the_rest_is_run_later",
            ],
        ),
        Fault(
            "it refuses the key (401, 403)",
            "not tried again; the session stops at once, the rest is left not run",
            [
                STOPS,
                f"{OUTCOMES}::test_what_no_row_can_survive_stops_the_session_at_the_first_rollout",
            ],
        ),
        Fault(
            "it does not know the model (404)",
            "the same, naming model and base URL",
            [STOPS, f"{HTTP}::test_an_unknown_model_is_fatal_in_every_dialect"],
        ),
        Fault(
            "it refuses a request (400, 422, a context too long)",
            "errored with the provider's words, shortened and without keys",
            [FAILS],
        ),
        Fault("it has a passing trouble (408, 409, 429, 5xx)", "tried again, counted", [AGAIN]),
        Fault(
            "it says how long to wait (Retry-After in seconds, milliseconds, as a date)",
            "waited for, by all workers: no request comes too early",
            [
                AGAIN,
                f"{BUDGETS}::test_no_worker_sends_a_request_before_another_ones_retry_after",
            ],
        ),
        Fault(
            "it asks for nonsense, or for a day",
            "nonsense is ignored; a day is errored at once: “asked to wait 27 h”",
            [AGAIN, FAILS],
        ),
        Fault(
            "a gateway answers 500 and speaks of the key, or says nothing where none was sent",
            "after five in a row of one call, and no answer before: the session stops as at a "
            "refused key",
            [
                f"{HTTP}::test_a_500_about_a_key_five_times_in_a_row_is_a_refused_key",
                f"{HTTP}::test_a_500_is_otherwise_one_that_may_pass",
                f"{BAD_END}::"
                "test_a_gateway_whose_500_is_about_the_key_stops_the_session_after_five_requests",
            ],
        ),
        Fault("the account has no quota left", "the session stops at once", [STOPS]),
        Fault("it forbids another try (`x-should-retry: false`)", "errored", [FAILS]),
        Fault(
            "it accepts and says nothing",
            "a deadline, tried again, then errored; the connection is closed",
            [f"{BAD_END}::test_an_endpoint_that_takes_too_long_is_left_and_the_row_errored"],
        ),
        Fault(
            "its answer trickles",
            "the deadline is that of the whole answer",
            [f"{BAD_END}::test_an_endpoint_that_takes_too_long_is_left_and_the_row_errored"],
        ),
        Fault(
            "the connection breaks before, within or behind the headers, or in the body",
            "tried again, then errored",
            [FAILS, f"{HTTP}::test_a_connection_broken_once_is_tried_again"],
        ),
        Fault(
            "it drops a connection that was kept",
            "replaced at once within 1 s of sending and counted as a retry; later: like any other",
            [f"{HTTP}::test_a_kept_connection_that_the_server_dropped_is_replaced_and_counted"],
        ),
        Fault(
            "it does not speak HTTP, or sends 100 kB of headers",
            "errored: “not an HTTP reply from …”",
            [FAILS],
        ),
        Fault(
            "a 200 is empty, broken JSON or a web page",
            "tried once more, then errored with status, content type and its beginning",
            [FAILS, f"{HTTP}::test_an_html_page_is_quoted_by_its_beginning"],
        ),
        Fault("a 200 is JSON but no object", "errored", [FAILS]),
        Fault(
            "a 200 is nested deeply, has endless numbers, or is not UTF-8",
            "errored; a byte order mark is skipped",
            [FAILS, ANSWERS],
        ),
        Fault("an answer has no choices or no message", "tried once more, then errored", [FAILS]),
        Fault(
            "a 200 holds an error",
            "treated by the error's code",
            [FAILS, f"{HTTP}::test_an_error_inside_a_200_is_what_its_code_says"],
        ),
        Fault("an answer is empty", "scored as empty text", [ANSWERS]),
        Fault("an answer is a list of parts", "its texts are joined", [ANSWERS]),
        Fault("an answer is a number", "errored by its type", [FAILS]),
        Fault(
            "the model refuses, or is cut short",
            "scored; the reason is in the report",
            [ANSWERS],
        ),
        Fault(
            "usage is absent, or nonsense",
            "the answer counts; its tokens are unknown, never 0",
            [ANSWERS, f"{HTTP}::test_unknown_usage_is_unknown_and_never_zero"],
        ),
        Fault(
            "the arguments of a tool call are not JSON, or no object",
            "the tool's result is the error; an object is accepted",
            [
                f"{TOOLS}::"
                "test_arguments_that_are_no_json_object_are_an_error_that_carries_the_calls_id",
                f"{HTTP}::test_tool_calls_get_ids_and_arguments_as_text",
            ],
        ),
        Fault(
            "a tool call is of an unknown tool, lacks an id or repeats one",
            "each call is answered: with an error, under a made-up id, both",
            [
                f"{TOOLS}::test_every_call_is_answered_whatever_its_shape",
                f"{TOOLS}::test_a_call_without_an_id_is_given_one_that_stays",
                FAILS,
            ],
        ),
        Fault(
            "the model calls tools without end, or hundreds at once",
            "the turn limit ends it; calls beyond a limit are answered and not executed",
            [
                "pytest_osmosis/acceptance/test_existing_project.py::test_a_turn_limit_ends_it_in_order",
                f"{TOOLS}::test_calls_beyond_the_limit_are_answered_and_not_executed",
            ],
        ),
        Fault(
            "an answer is huge, or unpacks to something huge",
            "errored at 32 MiB of unpacked bytes, while it is read",
            [FAILS],
        ),
        Fault("a gzip body is broken, or fine", "errored; read", [FAILS, ANSWERS]),
        Fault(
            "it redirects",
            "not followed: “set the base URL”; the key goes to no other host",
            [FAILS, f"{HTTP}::test_redirects_are_not_followed"],
        ),
        Fault(
            "TLS fails",
            "errored, saying what to do (set SSL_CERT_FILE, renew, call by another name); "
            "not tried again",
            [
                f"{POOL}::test_an_unknown_certificate_is_a_tls_error_that_is_not_retried",
                f"{POOL}::test_an_expired_certificate_is_refused",
                f"{POOL}::test_https_on_a_plain_port_asks_whether_http_is_meant",
            ],
        ),
        Fault(
            "the base URL lacks its scheme, or holds a query or a password",
            "normalised or refused; a password is never printed",
            [
                WRONG,
                "osmosis_ai/models/transport/test_base_url.py::"
                "test_what_is_no_address_is_refused_in_one_sentence",
            ],
        ),
        Fault(
            "an answer holds half characters or control characters",
            "report and JUnit are valid",
            [f"{BAD_END}::test_a_report_is_valid_whatever_was_said", ANSWERS],
        ),
        Fault("an answer or an error quotes the key", "the key is nowhere", [FAILS, SPELLED]),
        Fault("it streams although not asked to", "errored", [FAILS]),
        Fault(
            "three of ten calls fail",
            "every row ends; the same again sends the same requests",
            [f"{BAD_END}::test_an_endpoint_that_fails_every_third_call_ends_every_row_alike_twice"],
        ),
        Fault(
            "the proxy or certificate variables are wrong",
            "errored, naming the variable; loopback never goes through a proxy",
            [
                f"{POOL}::test_a_proxy_that_is_down_is_named_by_its_variable",
                f"{POOL}::test_a_missing_certificate_file_is_named_by_its_variable",
                f"{POOL}::test_loopback_is_never_asked_through_a_proxy",
            ],
        ),
        Fault(
            "the key is empty, missing, or holds what no header can carry",
            "refused, naming the variable and not the value",
            [WRONG, f"{SECRET}::test_a_key_that_cannot_travel_is_refused_by_name"],
        ),
    ],
    "The process": [
        Fault(
            "a worker is killed",
            "one run errored (“worker lost”), the runs beside it are run again alone",
            [
                f"{LOST}::test_a_worker_that_is_lost_costs_one_run",
                f"{KILL}::test_a_killed_worker_is_made_up_for",
                f"{LOST}::test_what_was_given_to_a_lost_worker_is_run_when_the_others_have_been_"
                "sent_home",
            ],
        ),
        Fault(
            "workers keep dying",
            "the session ends at pytest-xdist's limit; the rest is reported as not run",
            [
                f"{LOST}::"
                "test_workers_that_keep_dying_end_the_session_and_the_rest_is_told_as_not_run"
            ],
        ),
        Fault(
            "a worker freezes",
            "it is ended after `--osmosis-worker-timeout`, and is a lost worker",
            [f"{LOST}::test_a_worker_that_is_lost_costs_one_run"],
        ),
        Fault(
            "a file that the agent reads has changed (`osmosis_inputs`)",
            "a new evaluation starts, and the header names the file",
            [f"{RESUME}::test_a_changed_file_that_the_agent_reads_starts_anew_and_is_named"],
        ),
        Fault(
            "a report goes to `/dev/null` or into a FIFO",
            "written into, never replaced",
            [
                "pytest_osmosis/reports/test_formats.py::"
                "test_what_is_no_regular_file_is_written_into_by_every_report"
            ],
        ),
        Fault(
            "a text is cut in the middle of a key",
            "it is redacted first: no piece of a key is left in any output",
            [
                "pytest_osmosis/acceptance/test_cut_texts.py::"
                "test_no_piece_of_a_key_is_left_where_texts_are_cut",
            ],
        ),
        Fault(
            "the session is killed with SIGKILL",
            "its workers end within seconds; the same command goes on, and at most what was in "
            "flight is run twice",
            [f"{KILL}::test_a_killed_session_goes_on_where_it_was"],
        ),
        Fault(
            "the journal is torn, or damaged in the middle",
            "a torn end is dropped and said; damage is refused with its line",
            [
                f"{RESUME}::test_a_torn_line_is_dropped_and_said",
                f"{RESUME}::test_a_damaged_journal_is_refused_by_its_line",
            ],
        ),
        Fault(
            "Ctrl-C",
            "“interrupted: 23 of 60 runs are done and kept”, a partial report, exit status 2",
            [
                f"{SIGNALS}::test_a_signal_ends_the_session_and_reports_what_is_done",
                f"{SIGNALS}::"
                "test_ctrl_c_in_a_terminal_reaches_the_workers_too_and_ends_the_same_way",
                f"{SIGNALS}::test_code_that_holds_the_event_loop_does_not_hold_up_ctrl_c",
            ],
        ),
        Fault(
            "Ctrl-C twice",
            "ends at once, without a traceback",
            [f"{SIGNALS}::test_a_second_ctrl_c_ends_at_once_without_a_traceback"],
        ),
        Fault(
            "SIGTERM, SIGHUP",
            "like Ctrl-C",
            [f"{SIGNALS}::test_a_signal_ends_the_session_and_reports_what_is_done"],
        ),
        Fault(
            "the disk is full",
            "the old report stays; the journal's failure stops the run, so that nothing is spent "
            "that is not kept; results are still shown, exit status 1",
            [
                f"{RESUME}::test_a_full_disk_stops_the_run_and_what_is_done_is_reported",
                f"{REPORT}::TestWriting::test_what_cannot_be_written_in_the_end_is_told_and_fails_the_session",
                f"{JOURNAL}::test_whatever_call_fails_a_report_is_the_old_or_the_new_one",
            ],
        ),
        Fault(
            "a report cannot be written where it should be",
            "refused",
            [
                WRONG,
                f"{OPTIONS}::"
                "test_a_report_that_cannot_be_written_is_refused_before_the_first_request",
            ],
        ),
        Fault(
            "there are few file descriptors",
            "connections are bounded by the limit; “lower -n or --batch-size”",
            [
                f"{POOL}::test_the_pool_is_bounded_by_the_limit_on_open_files",
                f"{POOL}::test_running_out_of_open_files_says_what_to_lower",
            ],
        ),
        Fault("memory runs out in an agent", "errored; the session goes on", [UNRULY]),
        Fault(
            "the reader of a pipe goes away",
            "the report is whole, the journal too",
            [f"{AROUND}::test_a_reader_that_goes_away_takes_nothing_with_it"],
        ),
        Fault(
            "two sessions have one report or one evaluation",
            "the second is refused: “in use by pid 1234”; the lock ends with its holder; shards of "
            "one dataset do not collide",
            [
                f"{RESUME}::test_an_evaluation_that_goes_on_elsewhere_is_refused",
                f"{RESUME}::test_a_report_that_another_session_writes_is_refused",
                "pytest_osmosis/acceptance/test_shards.py::"
                "test_shards_run_beside_each_other_and_each_resumes_its_own_runs",
            ],
        ),
        Fault(
            "the clock jumps",
            "durations do not follow it; a date to wait for counts from the reply's own date",
            [
                "osmosis_ai/models/test_retry.py::"
                "test_a_date_counts_from_the_replys_own_date_whatever_our_clock_says"
            ],
        ),
        Fault(
            "the project is read-only, or has no locks",
            "a warning, and `--osmosis-run-dir`",
            [f"{RESUME}::test_a_read_only_project_is_evaluated_without_a_journal_and_warned"],
        ),
        Fault(
            "the journal is that of another dataset, agent or model, or of another version",
            "what differs is named; never mixed, never deleted; with `--osmosis-resume` refused",
            [
                f"{RESUME}::test_a_changed_option_starts_anew_and_is_named",
                f"{RESUME}::test_another_model_starts_anew_and_the_unfinished_one_stays",
                f"{JOURNAL}::test_the_journal_of_another_version_is_told_apart",
            ],
        ),
        Fault(
            "the agent's source changed",
            "a new evaluation starts, naming the file; a worker that loads another source than the "
            "session began with runs nothing",
            [
                f"{RESUME}::test_changed_source_starts_anew_and_is_named",
                f"{LOST}::test_a_worker_that_loads_another_version_of_the_agent_runs_nothing",
            ],
        ),
        Fault(
            "code forks",
            "a child inherits neither journal nor lock; one that comes back from the agent or "
            "from an eval function is ended",
            [
                f"{JOURNAL}::test_other_programs_do_not_inherit_the_file",
                f"{JOURNAL}::test_a_forked_child_does_not_keep_the_lock_of_its_parent",
                "osmosis_ai/running/test_forked.py::"
                "test_a_forked_child_that_comes_back_from_user_code_is_ended",
            ],
        ),
        Fault(
            "`fsync` fails",
            "nothing is written again, no run is started",
            [
                f"{JOURNAL}::test_after_a_failed_fsync_nothing_is_written_again",
                f"{JOURNAL}::test_whatever_call_fails_the_journal_holds_what_was_acknowledged",
            ],
        ),
        Fault(
            "a budget of money where the price is not known",
            "refused before the first call, naming `--osmosis-price-per-mtok IN,OUT`",
            [f"{BUDGETS}::test_a_budget_in_dollars_needs_a_price"],
        ),
        Fault(
            "a budget of money, tokens or time is spent",
            "nothing more is started, what is in flight is finished, the report is partial; the "
            "same command runs the rest",
            [
                f"{BUDGETS}::test_a_spent_budget_starts_nothing_more_and_the_rest_can_be_run_later",
                f"{BUDGETS}::test_a_spent_time_budget_finishes_what_is_in_flight",
                f"{BUDGETS}::test_the_cost_that_is_shown_is_the_one_that_was_used_and_a_last_run_stops_nothing",
            ],
        ),
        Fault(
            "a run was selected and is never reported",
            "an error that names it; the exit status is 1",
            [f"{BUDGETS}::test_a_run_that_nobody_reported_is_an_error_that_names_it"],
        ),
        Fault(
            "answers, conversations or ids are huge",
            "cut, in reports and node ids",
            [f"{BUDGETS}::test_what_is_huge_is_cut_and_the_session_goes_on"],
        ),
        Fault(
            "the power fails",
            "every run that was reported is in the journal",
            untested="it would take a machine to be switched off; the order of write, fsync and "
            "report is held by the tests of the journal",
        ),
        Fault(
            "the file system is NFS",
            "a warning where it has no locks",
            untested="it would take an NFS server; a file system without locks is played by a "
            "failing call",
        ),
    ],
    "Beside pytest": [
        Fault(
            "`-x`, `--maxfail`",
            "stops; what was in flight is cancelled, the report is marked incomplete",
            [f"{COLLECT}::test_it_stops_at_the_first_failure_and_cancels_what_is_in_flight"],
        ),
        Fault(
            "`-k`, `--deselect`, a node id",
            "those runs alone; the report says how many of how many",
            [
                f"{COLLECT}::test_items_are_selected_as_any_other_and_the_rest_is_told_as_missing",
                f"{COLLECT}::test_a_selection_means_the_same_under_xdist",
            ],
        ),
        Fault(
            "`--lf`, `--ff`, `--sw`",
            "work: names are the same in every session, in one process and in many",
            [
                f"{COLLECT}::test_the_last_failures_are_run_again",
                f"{COLLECT}::test_stepwise_goes_on_where_it_stopped",
                f"{COLLECT}::test_node_ids_are_stable_and_select_what_failed",
            ],
        ),
        Fault(
            "`--collect-only`",
            "no request, no key, no journal, no report",
            [f"{COLLECT}::TestPlan::test_it_counts_without_a_request_or_a_key"],
        ),
        Fault(
            "no xdist, `-n 0`, `-n 1`, `-n 2`",
            "the same report",
            [
                "pytest_osmosis/acceptance/test_both_modes.py::test_the_reports_of_both_modes_are_equal",
                f"{COLLECT}::test_it_works_without_other_parts_of_pytest",
            ],
        ),
        Fault("no terminal, cache, logging or JUnit plugin; `-q -q`", "works", [PARTS]),
        Fault(
            "`--pdb`, `--trace`",
            "one process; refused with workers",
            [f"{AROUND}::test_a_debugger_and_workers_do_not_go_together"],
        ),
        Fault(
            "pytest-timeout",
            "a run beyond its limit has failed, the others go on",
            [f"{BESIDE}::TestTimeout::test_a_run_beyond_the_limit_has_failed_and_the_others_go_on"],
        ),
        Fault(
            "pytest-randomly",
            "items are shuffled and the report is not",
            [f"{BESIDE}::TestRandomly::test_items_are_shuffled_and_the_report_is_not"],
        ),
        Fault(
            "pytest-rerunfailures",
            "a rerun is no second run, and not paid for",
            [f"{BESIDE}::TestRerunfailures::test_a_run_is_not_paid_for_twice"],
        ),
        Fault(
            "pytest-asyncio",
            "works in every mode",
            [f"{BESIDE}::TestAsyncio::test_async_tests_and_runs_do_not_meet"],
        ),
        Fault(
            "`--dist loadgroup`, `loadscope`, `loadfile`",
            "refused; in `addopts` taken as `load`, with a warning, where nothing but an "
            "evaluation runs",
            [
                f"{OPTIONS}::test_what_does_not_go_together_is_one_sentence",
                f"{SESSIONS}::"
                "test_a_dist_of_addopts_that_groups_tests_is_taken_as_load_for_runs_alone",
            ],
        ),
        Fault(
            "the current directory is not the root",
            "paths on the command line start here, those of the ini file at the root",
            [
                f"{OPTIONS}::TestPaths::"
                "test_on_the_command_line_they_start_at_the_current_directory",
                f"{OPTIONS}::TestPaths::test_in_the_ini_file_they_start_at_the_root",
            ],
        ),
        Fault(
            "JUnit, pytest-html, GitHub annotations",
            "valid and without keys, whatever a model says",
            [
                f"{BAD_END}::test_a_report_is_valid_whatever_was_said",
                f"{BESIDE}::test_html_shows_every_run_and_its_message",
                "pytest_osmosis/reports/test_github.py::test_text_of_models_is_one_command_at_most",
            ],
        ),
        Fault("`-W error`", "no warning of the plugin's own", [PARTS]),
        Fault(
            "`--import-mode=importlib`, the plugin named twice, plugins not loading themselves",
            "loads once",
            [
                PARTS,
                "pytest_osmosis/acceptance/test_unrelated_session.py::"
                "test_it_can_be_loaded_by_name_where_plugins_do_not_load_themselves",
            ],
        ),
        Fault(
            "no row is selected",
            "exit status 5",
            [f"{AROUND}::test_zero_selected_rows_are_nothing_to_run"],
        ),
        Fault(
            "ordinary tests, and no evaluation",
            "left alone: nothing heavy is imported",
            [
                "pytest_osmosis/acceptance/test_unrelated_session.py::test_ordinary_tests_are_left_alone",
                "pytest_osmosis/acceptance/test_unrelated_session.py::"
                "test_nothing_heavy_is_imported_and_no_more_than_the_plugin",
            ],
        ),
        Fault(
            "two datasets in one session",
            "a section each in the report",
            [f"{COLLECT}::test_two_data_files_are_two_evaluations_of_one_report"],
        ),
        Fault(
            "the key is in `addopts` or PYTEST_ADDOPTS",
            "warned about",
            [f"{AROUND}::test_a_key_in_the_ini_file_or_in_addopts_is_warned_about"],
        ),
    ],
    "Secrets": [
        Fault(
            "a key finds its way into an answer, an error, a log or the output",
            "it is in no report, journal, cache or log, in no spelling",
            [
                SPELLED,
                f"{SECRET}::test_every_spelling_is_masked",
                f"{RESUME}::test_a_key_is_in_nothing_that_is_kept",
            ],
        ),
        Fault("a traceback shows arguments and locals", "masked, in JUnit too", [SPELLED]),
        Fault(
            "the key is given on the command line",
            "works, and is warned about once",
            [f"{OPTIONS}::test_a_key_on_the_command_line_works_and_is_warned_about_once"],
        ),
        Fault(
            "the key is in the base URL",
            "refused; a URL is printed without credentials",
            [WRONG, f"{HTTP}::test_where_a_redirect_points_is_printed_without_credentials"],
        ),
        Fault("the provider echoes the key", "masked by its value", [FAILS, SPELLED]),
        Fault(
            "settings are printed, copied or pickled",
            "a key shows its name alone and is never pickled",
            [
                f"{SECRET}::test_a_secret_shows_its_name_and_never_its_value",
                f"{SECRET}::test_a_secret_is_never_pickled",
            ],
        ),
        Fault(
            "an agent starts programs",
            "command agents get no model's key and no `OSMOSIS_TOKEN`; "
            "children of agents in pytest's process inherit everything",
            [
                "pytest_osmosis/acceptance/test_command_agents.py::"
                "test_the_providers_key_is_not_in_its_environment"
            ],
        ),
        Fault("loggers run at DEBUG", "masked", [SPELLED]),
        Fault(
            "a process dumps core, or faulthandler its frames",
            "frames hold no values",
            untested="a dump is the system's; faulthandler prints names of functions alone",
        ),
        Fault(
            "a secret is short, or a common word",
            "not masked, and that is said",
            [
                f"{AROUND}::test_a_short_or_common_secret_is_not_masked_and_that_is_said",
                f"{SECRET}::test_short_and_common_secrets_are_not_masked_but_named",
            ],
        ),
        Fault(
            "a `.env` of the repository sets logins, proxies, `PYTHONPATH`, or an address",
            "ignored, and said in one line: only a file that is named sets them",
            [
                "osmosis_ai/platform/test_env_file.py"
                "::test_a_file_that_was_found_sets_nothing_that_moves_logins_traffic_or_code",
                "osmosis_ai/platform/test_env_file.py"
                "::test_a_file_that_was_found_sends_no_key_elsewhere_but_its_own",
                "osmosis_cli/test_env_file.py::test_the_nearest_file_is_read_and_said_in_one_line",
            ],
        ),
        Fault(
            "others can read the files",
            "journal and conversations are their owner's alone (0600); reports follow the umask",
            [
                f"{RESUME}::test_what_is_kept_is_private_and_out_of_version_control",
                f"{REPORT}::TestWriting::test_its_mode_is_the_umasks_or_that_of_the_file_before",
            ],
        ),
    ],
    "Runs submitted to a platform": [
        Fault(
            "the platform answers 401, 403, 404, 409, 422, 426, 429, 500, a web page, another "
            "document, a redirect; slowly, not at all, too much; or hangs up",
            "one sentence with the next step and the id of the request, exit status 1; with "
            "`--json` one error document",
            [
                f"{CLIENT}::test_each_failure_is_one_sentence_with_the_id_of_the_request",
                f"{SUBMITTED}::test_a_failure_is_one_line_or_one_json_error",
                f"{SUBMIT}"
                "::test_a_failure_is_one_line_that_says_whether_it_may_have_been_submitted",
            ],
        ),
        Fault(
            "nothing listens at the platform's address, or it has no TLS",
            "said, after four tries or at once",
            [
                f"{CLIENT}::test_a_platform_that_is_not_there_is_said_after_some_tries",
                f"{CLIENT}::test_a_server_without_tls_is_said_at_once",
            ],
        ),
        Fault(
            "the connection breaks, or the platform is busy for a while",
            "what may be sent twice is: a submission has a key, so that it is made once; "
            "Retry-After is kept up to 30 s",
            [
                f"{CLIENT}::test_only_what_may_be_sent_twice_is_sent_again",
                f"{CLIENT}::test_retry_after_is_waited_for_unless_it_is_long",
                f"{SUBMIT}::test_a_submission_is_tried_again_with_the_same_key",
            ],
        ),
        Fault(
            "the platform's list has no end",
            "refused after 1,000 pages, or where it does not go on",
            [f"{CLIENT}::test_pages_without_an_end_are_refused"],
        ),
        Fault(
            "text of the platform has control characters, a token, or a URL with a password",
            "escaped, masked, cut",
            [
                f"{CLIENT}::test_each_failure_is_one_sentence_with_the_id_of_the_request",
                f"{SUBMITTED}::test_a_list_is_a_table_with_relative_times",
                f"{SUBMITTED}::test_a_log_is_read_to_its_end",
            ],
        ),
        Fault(
            "the origin's URL has a password",
            "it is in no request, message or document",
            [f"{SUBMIT}::test_an_evaluation_is_sent_field_by_field"],
        ),
        Fault(
            "the name of a run has slashes, or is `..`",
            "it stays one segment of the path; `..` is refused, exit status 2",
            [
                f"{SUBMITTED}::test_a_name_is_one_segment_of_the_path",
                f"{SUBMITTED}::test_a_name_that_is_none_is_refused",
            ],
        ),
        Fault(
            "the config file is wrong",
            "every problem, exit status 1, before anything is sent",
            [f"{SUBMIT}::test_every_problem_of_the_config_is_told_and_nothing_is_asked"],
        ),
        Fault(
            "a work tree that no platform can find: no `origin`, not on GitHub, no commit",
            "each its own sentence, before anything is sent",
            [
                f"{SUBMIT}::test_a_work_tree_that_no_platform_can_find_is_refused",
                f"{GIT}::test_a_missing_origin_is_told_with_the_command_that_adds_one",
                f"{GIT}::test_an_origin_elsewhere_is_told_without_its_credentials",
            ],
        ),
        Fault(
            "git is missing, hangs, refuses another user's repository, or finds a broken one",
            "each its own sentence; a git that hangs is ended with its children",
            [
                f"{GIT}::test_a_missing_git_is_told",
                f"{GIT}::test_a_git_that_hangs_is_ended_with_its_children",
                f"{GIT}::test_a_repository_of_another_user_is_told_with_the_command_that_trusts_it",
                f"{GIT}"
                "::test_a_git_folder_that_is_no_repository_is_not_taken_for_the_one_around_it",
            ],
        ),
        Fault(
            "the repository's own configuration names programs: hooks, filters, a file monitor",
            "none of them is run",
            [f"{GIT}::test_programs_in_the_repositorys_own_configuration_are_not_run"],
        ),
        Fault(
            "a rollout cannot be imported, hangs or ends its process when it is",
            "a warning before the question with the user's own line, refused with `--strict`; "
            "a package that is not installed here is not checked",
            [
                f"{TRIED}::test_what_the_code_raises_is_told_with_its_place_and_no_value_of_env",
                f"{TRIED}::test_code_that_hangs_is_ended_with_its_children",
                f"{TRIED}::test_a_package_that_is_not_installed_here_is_not_checked",
                f"{TRIED}::test_each_way_in_which_code_cannot_be_used",
            ],
        ),
        Fault(
            "a workflow crashes on its first row, or has a wrong signature",
            "found by `--preflight` on this machine, before any model is paid",
            [
                f"{TRIED}::test_a_row_that_fails_is_told_and_no_model_is_paid",
                f"{TRIED}::test_a_real_row_runs_and_leaves_nothing_behind",
            ],
        ),
        Fault(
            "`pytest CONFIG.toml` where the environment lacks what the file names, or beside "
            "`--osmosis-agent`",
            "refused with the names, and how to run it",
            [
                "pytest_osmosis/acceptance/test_config_argument.py"
                "::test_what_cannot_be_evaluated_is_one_sentence"
            ],
        ),
        Fault(
            "Git would commit `.env` or `.osmosis` although `.gitignore` names them",
            "`osmosis workspace init` warns",
            [
                "osmosis_cli/platform/test_workspace.py"
                "::test_what_git_would_commit_all_the_same_is_warned_about"
            ],
        ),
        Fault(
            "the pinned commit is not pushed",
            "refused; other unpushed commits, changed files and branches are warnings",
            [
                f"{SUBMIT}::test_a_pinned_commit_must_be_on_the_origin",
                f"{SUBMIT}::test_what_of_the_work_tree_does_not_run_is_warned_about",
            ],
        ),
        Fault(
            "secrets are missing on the platform",
            "refused before anything is sent: all of them, with the commands that set them",
            [
                f"{SUBMIT}::test_missing_secrets_are_all_named_with_the_commands_that_set_them",
            ],
        ),
        Fault(
            "no terminal to ask on",
            "exit status 2, which names `--yes`; nothing is sent",
            [
                f"{SUBMIT}::test_without_a_terminal_a_yes_is_needed_and_what_would_run_is_said",
                f"{SUBMITTED}::test_stopping_needs_a_yes_where_there_is_no_terminal",
            ],
        ),
        Fault(
            "the platform is away while a run is watched",
            "said, and asked again, up to ten times in a row",
            [f"{SUBMITTED}::test_watching_outlasts_a_platform_that_is_away_for_a_while"],
        ),
        Fault(
            "Ctrl-C while a run is watched",
            "exit status 130; the run goes on, and how to end it is said",
            [f"{SUBMITTED}::test_ctrl_c_leaves_the_run_alone_and_says_so"],
        ),
        Fault(
            "the platform has no report of a run, or sends something else",
            "one sentence; no file is written",
            [
                f"{SUBMITTED}::test_a_platform_without_reports_says_so_in_one_sentence",
                f"{SUBMITTED}::test_what_is_no_report_is_not_kept",
            ],
        ),
    ],
    "Runs that a platform of your own executes": [
        Fault(
            "the commit is not there, or its first digits are those of several",
            "the run fails, saying so",
            [f"{CHECKOUT}::test_a_commit_that_is_not_there_or_is_not_one_alone_is_refused"],
        ),
        Fault(
            "the repository has symlinks, submodules, filters or hooks, or is huge; its URL would "
            "start a program",
            "nothing of it is followed, fetched or run; the run fails before files are written",
            [
                f"{CHECKOUT}::test_nothing_of_a_repository_leads_out_of_it_or_starts_a_program",
                f"{CHECKOUT}"
                "::test_a_repository_that_is_too_large_is_refused_before_its_files_are_written",
                f"{CHECKOUT}::test_only_https_ssh_and_a_folder_of_the_operator_are_cloned_from",
            ],
        ),
        Fault(
            "the model has another name, the key is wrong, the rollout is not there",
            "the run fails before any row, saying which",
            [
                f"{EXECUTED}::test_a_run_that_fails_says_why",
                f"{EXECUTED}::test_what_is_missing_is_told_before_any_child_is_started",
            ],
        ),
        Fault(
            "a run is stopped",
            "its processes are ended within seconds; what was finished is kept",
            [
                f"{EXECUTED}::test_stopping_ends_the_child_and_keeps_its_report",
                f"{EXECUTIONS}::test_stopping_ends_every_process_and_keeps_what_was_finished",
            ],
        ),
        Fault(
            "the platform is ended, or killed, while it executes runs",
            "their processes end with it; started again, it goes on from the journals",
            [
                f"{EXECUTIONS}::test_a_platform_that_was_killed_goes_on_and_pays_nothing_twice",
                f"{EXECUTED}::test_a_platform_that_ends_leaves_the_run_to_the_next_start",
            ],
        ),
        Fault(
            "a requirement of the rollout is not to be had, conflicts with the plugin, or its "
            "`pyproject.toml` cannot be read",
            "the run fails with the requirement or the end of the build log; what was built so far "
            "is not taken for an environment",
            [
                f"{BUILD}::test_a_build_that_fails_names_the_requirement_and_leaves_nothing",
                f"{BUILD}::test_a_project_that_cannot_be_built_is_one_sentence",
                f"{BUILD}::test_what_a_kill_has_left_is_not_taken_for_an_environment",
                f"{EXECUTED}::test_a_build_that_fails_fails_the_run_with_its_reason_and_its_log",
            ],
        ),
        Fault(
            "two runs need the same environment at once, or one is stopped while it builds",
            "it is built once; the build ends within seconds, and leaves nothing",
            [
                f"{BUILD}::test_two_runs_that_want_the_same_environment_build_it_once",
                f"{BUILD}::test_a_build_that_is_stopped_leaves_nothing_and_has_no_secret",
            ],
        ),
        Fault(
            "a run takes more memory, processor time or files than the operator allows",
            "its process is ended; the run fails with the limit, where the signal says which",
            [
                f"{PROGRAMS}::test_a_program_that_takes_more_than_its_limits_is_ended",
                f"{EXECUTED}::test_a_run_that_fails_says_why",
            ],
        ),
        Fault(
            "a run's code looks into the platform's data, where the platform has `--run-as`",
            "it cannot: it runs as another user, in folders of that user",
            [
                f"{PROGRAMS}::test_a_program_can_run_as_another_user_with_a_limit_of_processes",
                "osmosis_platform/execution/test_run_as.py::"
                "test_code_of_users_runs_as_another_user_who_cannot_read_the_platforms_data",
            ],
        ),
        Fault(
            "a training run is submitted to a platform without a trainer; the trainer fails, is "
            "killed, or the rollout's server ends before it",
            "refused in a sentence; `failed`, `killed` and `crashed`, with the reason",
            [
                "osmosis_platform/test_submitting.py"
                "::test_a_platform_refuses_training_without_a_trainer_and_a_run_too_many",
                "osmosis_platform/execution/test_training.py::test_how_a_training_run_ends_is_said",
            ],
        ),
        Fault(
            "a process of an evaluation is killed, as where memory is short",
            "it goes on from its journal, twice at most; then the run fails and says so",
            [
                f"{EXECUTED}::test_an_evaluation_that_was_killed_goes_on_twice",
                "osmosis_platform/execution/test_several.py::test_kills_lose_no_finished_result"
                "_and_pay_again_only_for_what_was_in_flight",
            ],
        ),
        Fault(
            "two schedulers reach for one run",
            "one of them takes it",
            [
                "osmosis_platform/execution/test_several.py"
                "::test_fifty_runs_are_each_executed_once_by_two_schedulers_so_many_at_once",
                "osmosis_platform/execution/test_several.py"
                "::test_a_run_belongs_to_one_scheduler_whatever_they_do",
            ],
        ),
        Fault(
            "the rollout prints a secret",
            "masked in log and report",
            [f"{EXECUTED}::test_a_run_that_ends_has_its_figures_its_report_and_no_work_tree"],
        ),
    ],
    "Logins, datasets and secrets on a platform": [
        Fault(
            "a call fails while a login is kept, or the process is killed",
            "the logins are the old or the new ones; the file has mode 0600 from its first byte, "
            "also under umask 0",
            [
                f"{CREDENTIALS}::test_whatever_call_fails_the_logins_are_the_old_or_the_new_ones",
                f"{CREDENTIALS}"
                "::test_under_an_open_umask_everything_is_private_from_its_first_byte",
            ],
        ),
        Fault(
            "two logins at once",
            "both are kept",
            [f"{CREDENTIALS}::test_of_many_changes_at_once_none_is_lost"],
        ),
        Fault(
            "the credentials file is a link, another user's, or readable by others",
            "refused; a login closes one that others can read, and says so",
            [
                f"{CREDENTIALS}::test_a_link_is_neither_read_nor_replaced",
                f"{CREDENTIALS}::test_a_file_of_another_user_is_refused",
                f"{CREDENTIALS}::test_what_others_can_read_is_closed_and_said",
                f"{READER}::test_a_file_that_others_can_read_is_refused",
            ],
        ),
        Fault(
            "the credentials file cannot be understood",
            "left unchanged, exit status 1: repair it, or move it away and log in again",
            [
                f"{READER}::test_a_broken_file_is_left_unchanged_and_said",
                f"{LOGIN}::test_a_broken_file_is_refused_before_a_login_asks_for_anything",
            ],
        ),
        Fault(
            "the login has expired, or does within a minute",
            "said with the date before anything is sent, exit status 1",
            [f"{READER}::test_an_expired_login_is_said_before_anything_is_sent"],
        ),
        Fault(
            "the platform is plain http, and not on this machine",
            "refused",
            [f"{READER}::test_a_platform_without_encryption_is_on_loopback"],
        ),
        Fault(
            "`OSMOSIS_TOKEN` is of another platform",
            "refused, unless `OSMOSIS_TOKEN_PLATFORM_URL` names it",
            [f"{READER}::test_a_token_in_a_variable_is_bound_to_its_platform"],
        ),
        Fault(
            "the keyring is locked, absent or hangs",
            "the file has the token after 3 s at the latest, which is said once",
            [
                "osmosis_cli/credentials/test_keyring_tokens.py"
                "::test_without_a_usable_keyring_the_file_has_the_token_and_that_is_said_once",
                "osmosis_cli/credentials/test_keyring_tokens.py"
                "::test_a_hanging_keyring_is_waited_for_no_longer_than_its_limit",
            ],
        ),
        Fault(
            "the code is denied, expires, or is asked for too often",
            "said; the pause that the platform asks for is kept",
            [
                f"{LOGIN}::test_a_login_that_is_not_confirmed_is_said_and_nothing_is_kept",
                f"{LOGIN}::test_the_interval_is_kept_and_grows_when_the_platform_asks_for_it",
            ],
        ),
        Fault(
            "Ctrl-C while a login waits",
            "exit status 130, nothing is kept",
            [f"{LOGIN}::test_ctrl_c_while_waiting_leaves_nothing_behind"],
        ),
        Fault(
            "the token cannot be revoked at a logout",
            "it is removed from this machine, with a warning",
            [
                f"{LOGIN}::test_the_token_is_removed_also_when_it_is_not_revoked",
                f"{LOGIN}::test_a_failed_revocation_is_a_warning",
            ],
        ),
        Fault(
            "no terminal",
            "nothing is asked; exit status 2 names the option",
            [
                f"{LOGIN}::test_logout_asks_and_without_a_terminal_names_the_option",
                f"{LOGIN}::test_with_json_and_no_terminal_a_token_must_be_given",
            ],
        ),
        Fault(
            "a secret's value is given as an argument",
            "refused, and not shown",
            [f"{SECRET_COMMAND}::test_a_value_among_the_arguments_is_refused_and_not_shown"],
        ),
        Fault(
            "a secret's value ends in a newline",
            "one is removed, and that is said",
            [f"{SECRET_COMMAND}::test_one_newline_at_the_end_is_removed_and_nothing_else"],
        ),
        Fault(
            "the platform quotes a secret's value in an error",
            "the quote is not shown",
            [f"{SECRET_COMMAND}::test_an_error_that_quotes_the_value_is_not_shown"],
        ),
        Fault(
            "names from the platform have control or bidirectional characters",
            "escaped",
            [
                f"{LOGIN}::test_names_of_the_platform_are_escaped",
                f"{SECRET_COMMAND}::test_names_of_the_platform_are_escaped",
            ],
        ),
        Fault(
            "an upload is cut short: Ctrl-C, a failure, a kill",
            "the same command sends only the parts that are missing",
            [
                f"{UPLOAD}::test_an_upload_that_failed_goes_on_where_it_stopped",
                f"{UPLOAD}::test_ctrl_c_keeps_what_arrived_and_says_how_to_go_on",
                "osmosis_cli/platform/test_login_end_to_end.py"
                "::test_from_a_code_in_the_browser_to_an_upload_that_was_killed_and_a_logout",
            ],
        ),
        Fault(
            "the address of a part redirects, or is plain http elsewhere",
            "not followed, not sent to; no address of a part gets the token",
            [
                f"{UPLOAD}::test_a_redirect_of_a_part_is_not_followed",
                f"{UPLOAD}::test_an_address_that_nothing_can_be_sent_to_is_refused",
                f"{UPLOAD}::test_a_small_file_is_sent_in_one_piece_and_without_credentials",
            ],
        ),
        Fault(
            "the file changes while it is uploaded",
            "the upload is not completed, exit status 1",
            [f"{UPLOAD}::test_a_file_that_changes_while_it_is_sent_is_not_completed"],
        ),
    ],
    "A platform of your own": [
        Fault(
            "a request has no token, or one that is wrong, expired, revoked, malformed or given "
            "twice",
            "401 with one and the same answer",
            [
                f"{CALLS}::test_whatever_is_wrong_with_a_token_gets_the_same_answer",
                f"{CALLS}::test_every_call_wants_a_token_that_still_serves",
            ],
        ),
        Fault(
            "a user asks for what is another workspace's",
            "404, as for what is not there",
            [f"{CALLS}::test_what_is_another_workspaces_is_404_and_stays_as_it_is"],
        ),
        Fault(
            "a viewer changes something; a member has left the workspace",
            "403; 401",
            [f"{CALLS}::test_a_member_who_left_is_logged_out_and_a_viewer_changes_nothing"],
        ),
        Fault(
            "a body is too large, never ends, is not JSON, has NaN, a key twice, or deep nesting",
            "413 before it is read; 408; 422 without an echo",
            [
                f"{CALLS}::test_a_body_that_is_no_good_is_refused_without_an_echo",
                f"{CALLS}::test_the_token_is_looked_at_before_a_body_is_read_and_a_body_that_never_"
                "comes_ends",
            ],
        ),
        Fault(
            "a submission has an unknown field, a value of another type, or names a secret or a "
            "dataset that is not there",
            "422 with the field and the rule, and never the value",
            [
                "osmosis_platform/test_submitting.py"
                "::test_a_wrong_submission_is_refused_with_its_field_and_the_rule_and_no_value",
                "osmosis_platform/test_submitting.py"
                "::test_secrets_that_neither_the_user_nor_the_workspace_has_are_named",
            ],
        ),
        Fault(
            "another site sends a form, or reaches the platform under its own name",
            "403; 400; no header lets another origin read an answer",
            [
                "osmosis_platform/test_device_flow.py"
                "::test_a_form_without_its_token_or_from_another_site_changes_nothing",
                f"{CALLS}::test_another_host_is_refused_on_every_page",
                f"{CALLS}::test_no_answer_lets_another_origin_in",
            ],
        ),
        Fault(
            "passwords are guessed",
            "a name is blocked for ten minutes after ten failures",
            [
                "osmosis_platform/test_device_flow.py"
                "::test_a_name_is_blocked_for_a_while_after_too_many_failures"
            ],
        ),
        Fault(
            "the URL of an upload is changed, or old",
            "403",
            ["osmosis_platform/test_datasets.py::test_a_url_serves_its_own_part_until_it_expires"],
        ),
        Fault(
            "the key of the stored secrets is another one, or others can read its file",
            "the platform does not start",
            [
                "osmosis_platform/test_secrets.py"
                "::test_a_key_that_is_none_or_another_one_is_refused_without_showing_it",
                "osmosis_platform/test_secrets.py"
                "::test_the_key_file_is_the_owners_alone_under_any_umask_and_is_kept",
            ],
        ),
        Fault(
            "`osmosis platform key change` is killed half-way",
            "all can be read by the two keys that the file has then; the next change completes it",
            [
                "osmosis_platform/vault/test_key_change.py"
                "::test_a_change_that_is_killed_loses_nothing_and_the_next_completes_it"
            ],
        ),
        Fault(
            "the database is locked, read-only or full",
            "503 or 507; `GET /health/ready` and the log say which",
            [
                "osmosis_platform/test_operations.py"
                "::test_a_platform_whose_database_cannot_be_used_says_why",
                "osmosis_platform/test_operations.py"
                "::test_a_database_that_another_writes_for_long_is_said_to_be_locked",
            ],
        ),
        Fault(
            "a dataset that is uploaded holds rows that no evaluation takes",
            "422 with the line; the dataset is `failed`",
            [
                "osmosis_platform/test_datasets.py"
                "::test_rows_are_checked_as_an_evaluation_checks_them"
            ],
        ),
        Fault(
            "the database is of an older version",
            "the platform does not start, and names `osmosis platform db upgrade`",
            [
                "osmosis_platform/database/test_schema.py"
                "::test_an_older_database_is_refused_until_it_is_upgraded_and_keeps_its_rows"
            ],
        ),
        Fault(
            "a password of the database is on the command line",
            "refused, without repeating it",
            ["osmosis_platform/commands/test_commands.py::test_a_mistake_is_one_sentence"],
        ),
        Fault(
            "a backup is cut short, or leads out of its folder",
            "refused",
            ["osmosis_platform/backup/test_backup.py::test_what_is_no_backup_is_refused"],
        ),
        Fault(
            "the database is of a newer version",
            "left alone; the platform does not start",
            [
                "osmosis_platform/database/test_schema.py"
                "::test_the_tables_of_a_newer_version_are_left_alone"
            ],
        ),
    ],
}


def page() -> str:
    """The page, as it is written."""
    parts = [INTRODUCTION]
    for title, faults in FAULTS.items():
        parts.append(f"## {title}\n")
        parts.append("| when… | you see |\n|---|---|")
        parts += [f"| {each.what} | {each.seen} |" for each in faults]
        parts.append("")
    return "\n".join(parts)


def missing() -> Iterator[str]:
    """Tests that are named here and are nowhere."""
    for faults in FAULTS.values():
        for fault in faults:
            for test in fault.tests:
                file, _, name = test.partition("::")
                if name not in _tests_of(file):
                    yield test


@cache
def _tests_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    return frozenset(_named(tree.body))


def _named(body: Sequence[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _named(node.body, f"{node.name}::")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield prefix + node.name


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
