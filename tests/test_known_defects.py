"""Every known defect of a peer, and every fault that a lobby, a database or a plugin can have, has a test by name."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

PEERS = {
    "a game started beyond the cap (lichess-bot#1163)": (
        "host/test_host_faults.py",
        "test_never_more_tables_than_slots_whatever_the_lobby_does",
    ),
    "an acceptance in flight did not count (lichess-bot#991, #1101)": (
        "tables/test_slots.py",
        "test_a_game_is_not_started_beyond_the_concurrency_cap",
    ),
    "time 0 after a reconnect, then an illegal move (lichess-bot#1053)": (
        "host/test_host_faults.py",
        "test_time_0_after_a_reconnect_is_no_reason_for_an_illegal_move",
    ),
    "silently offline after a server restart (lichess-bot#222)": (
        "host/test_host_faults.py",
        "test_a_lobby_restarted_mid_game_aborts_its_tables_and_play_goes_on",
    ),
    "moves lost in a soft shutdown (lichess-bot#1155)": (
        "host/test_host_faults.py",
        "test_a_drain_finishes_the_open_hands_and_loses_no_move",
    ),
    "a token printed in a log (lichess-bot#1133)": ("test_logs.py", "test_a_planted_token_is_nowhere"),
    "a synchronous policy blocked every battle (poke-env#590)": (
        "host/test_bad_plugins.py",
        "test_a_strategy_that_hangs_in_the_shared_worker_delays_nobody_else",
    ),
    "finished games leaked (poke-env#590)": ("host/test_bad_plugins.py", "test_finished_games_are_released"),
    "one bad plugin bricked the command line (llm#1280)": (
        "cli/test_command_line.py",
        "test_plugins_add_commands_and_cannot_break_or_take_others",
    ),
    "a rocket missed because the jokers came unsorted (DouZero#26)": (
        "rules/doudizhu/test_doudizhu_moves.py",
        "test_douzero_26_unsorted_jokers_are_still_a_rocket",
    ),
    "jokers thrown away as kickers (DouZero#43)": (
        "rules/doudizhu/test_doudizhu_moves.py",
        "test_douzero_43_jokers_are_no_kickers_unless_the_table_says_so",
    ),
    "strategies that differed live and in replay (Akagi#279)": (
        "host/test_live_and_replay.py",
        "test_a_deterministic_strategy_decides_in_replay_as_it_did_live",
    ),
    "training impossible without an existing model (Mortal#56)": (
        "cli/test_train_command.py",
        "test_training_ends_in_weights_as_a_package_ships_them",
    ),
}

LOBBY = "host/test_host_faults.py"
BREAKS = "test_a_connection_that_fails_in_the_middle_of_a_hand"
FRAMES = "test_frames_that_are_lost_doubled_swapped_and_garbage"
PLUGIN = "host/test_bad_plugins.py"
FAILS = "test_a_strategy_that_fails_is_replaced_by_the_fallback_and_quarantined_for_new_tables"
PROCESS = "host/test_processes.py"
FAULTS = {
    "silence after a move": (LOBBY, BREAKS),
    "open but dead socket": (LOBBY, BREAKS),
    "connection that breaks without a close frame": (LOBBY, BREAKS),
    "oversize message": (LOBBY, BREAKS),
    "server crash and restart": (LOBBY, "test_a_lobby_restarted_mid_game_aborts_its_tables_and_play_goes_on"),
    "rate cut without a close frame": (LOBBY, "test_a_rate_cut_costs_a_connection_and_no_move"),
    "zombie first socket": (LOBBY, "test_a_zombie_first_socket_is_noticed_and_left"),
    "stale game-over": (LOBBY, "test_the_end_of_a_table_of_another_evening_is_ignored"),
    "double log-in": (LOBBY, "test_after_a_double_log_in_the_host_does_not_fight_for_the_account"),
    "clock 0 after a reconnect": (LOBBY, "test_time_0_after_a_reconnect_is_no_reason_for_an_illegal_move"),
    "messages out of order, doubled, lost, garbage": (LOBBY, FRAMES),
    "a million hostile frames at an adapter": (
        "lobbies/test_adapter_fuzz.py",
        "test_a_million_hostile_frames_break_no_adapter",
    ),
    "a million hostile frames at the embedded lobby": (
        "lobby_server/test_lobby_fuzz.py",
        "test_many_frames_that_are_almost_right",
    ),
    "SIGKILL at any moment": ("host/test_kill.py", "test_kills_lose_no_move_and_double_none"),
    "a database that is away": ("store/test_postgres.py", "test_a_lost_connection_costs_nothing"),
    "a database server that is silent": ("store/test_postgres.py", "test_a_server_that_is_silent_counts_as_away"),
    "a database that takes long to be found away": (
        "store/test_decision_log.py",
        "test_nobody_waits_while_a_database_is_looked_for",
    ),
    "a database that is away while hands go on": (
        LOBBY,
        "test_hands_that_go_on_wait_for_a_database_that_is_away",
    ),
    "a full disk": ("store/test_decision_log.py", "test_a_full_disk_loses_nothing"),
    "a damaged spool": ("store/test_decision_log.py", "test_a_damaged_spool_is_set_aside_and_the_rest_replayed"),
    "an adapter that does not notice its dead connection": (
        LOBBY,
        "test_a_session_that_died_is_left_even_when_the_adapter_does_not_notice",
    ),
    "everything at once": (
        "bench/test_chaos.py",
        "test_some_seconds_of_chaos_lose_and_double_nothing",
    ),
    "two hosts, one killed": (
        "host/test_two_hosts_on_postgres.py",
        "test_the_other_host_takes_over_and_every_move_has_one_row",
    ),
    "plugin hangs": (PLUGIN, "test_a_strategy_that_hangs_costs_its_tables_a_fallback_and_its_thread"),
    "plugin crashes": (PLUGIN, FAILS),
    "plugin calls exit()": (PLUGIN, FAILS),
    "plugin plays illegal moves": (PLUGIN, FAILS),
    "plugin is slow": (PLUGIN, "test_a_slow_inline_strategy_gets_a_thread_of_its_own"),
    "plugin segfaults": (PROCESS, "test_a_segfault_costs_one_decision"),
    "plugin leaks": (PROCESS, "test_a_process_that_leaks_is_killed_above_its_limit"),
    "plugin floods its output": (PROCESS, "test_at_the_table_a_process_that_floods_its_output_plays_on"),
    "plugin holds the GIL": (PROCESS, "test_a_process_that_holds_the_gil_is_killed_at_the_deadline_and_replaced"),
    "plugin cannot be imported": (
        "plugins/test_plugins.py",
        "test_every_broken_plugin_is_told_with_its_cause_and_costs_nothing_else",
    ),
}


@pytest.mark.parametrize(("file", "name"), [*PEERS.values(), *FAULTS.values()], ids=[*PEERS, *FAULTS])
def test_a_test_of_that_name_exists(file, name):
    tree = ast.parse((TESTS / file).read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in functions
