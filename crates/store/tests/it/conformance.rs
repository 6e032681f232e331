//! The story that every backend passes, in chapters. A chapter takes a world that is fresh and knows nothing of what
//! it is kept on; one that needs a second workspace or harness gets it from `Cast`.

mod asks;
mod lists;
mod runs;

use chips_store::Identity;

use crate::support::{World, identity, world};

/// A world, a second harness in it, and a second workspace on the same store.
pub struct Cast {
    pub world: World,
    pub second: Identity,
    pub elsewhere: World,
}

/// Gives every chapter to the embedded backend.
macro_rules! chapters {
    ($($module:ident: $($chapter:ident)*;)*) => {$($(
        #[tokio::test]
        async fn $chapter() {
            let (dir, world) = world().await;
            let mut admin = chips_store::admin::Admin::open(dir.path()).unwrap();
            let second = admin.add_harness(world.workspace_id, "Second").unwrap();
            let elsewhere = admin.add_workspace("Elsewhere").unwrap();
            let cast = Cast {
                second: identity(&world.store, &second.token).await,
                elsewhere: World::enter(&world.store, &elsewhere).await,
                world,
            };
            $module::$chapter(&cast).await;
            cast.world.store.clone().close().await;
        }
    )*)*};
}

chapters! {
    asks:
        a_question_is_asked_answered_and_acted_on
        the_same_ask_twice_is_one_event
        fifty_copies_at_once_are_one_event
        another_question_under_a_known_ask_id_is_refused
        a_known_event_id_for_something_else_is_refused
        a_key_replays_whatever_the_body_says
        a_key_is_its_senders_own
        a_refusal_uses_no_key_up
        an_answer_that_won_is_replayed
        an_answer_before_its_ask_counts_once_the_ask_is_there
        of_many_answers_at_once_one_wins
        one_answer_of_three_closes_the_ask
        several_choices_and_text_are_kept
        an_answer_that_does_not_fit_leaves_the_ask_open
        another_harness_finds_no_ask
        an_agent_belongs_to_the_first_harness_that_names_it
        agents_spend_their_harnesss_budget
        after_the_deadline_the_default_stands_and_the_answer_is_kept_beside
        late_answers_are_kept_once_and_ten_at_most
        the_deadline_closes_once
        identifiers_are_unique_within_a_workspace_only;
    runs:
        a_run_is_opened_once
        a_run_keeps_what_it_was_opened_with
        a_run_takes_no_foreign_space_or_parent
        ending_a_run_withdraws_what_is_open
        a_run_that_ended_takes_no_asks_but_replays
        only_the_harness_ends_its_run
        only_the_harness_acknowledges_and_the_first_time_stands
        what_went_out_is_marked_once;
    lists:
        what_is_urgent_comes_first_page_by_page
        closed_asks_come_newest_first_page_by_page
        filters_narrow_and_foreign_ones_find_nothing
        text_is_found_whatever_its_case
        a_log_is_read_the_same_in_one_go_and_in_steps
        events_are_filtered_by_type_run_and_ask
        a_harness_sees_its_own_and_a_person_all_of_their_spaces
        me_is_the_viewer_with_spaces_and_budget;
}
