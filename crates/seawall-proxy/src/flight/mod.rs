//! Flights: one piece of work and its answer, for whoever waits for it.
//!
//! Every request begins a flight, or joins one. Its clients are its *readers*: each of them has a place in the answer
//! and gets it from its first byte on. Nobody owns the work: a reader that has read all there is polls it, so that it
//! goes as fast as the fastest of them and costs no task of its own. When the last reader leaves and the engine lets
//! the work go on, a *minder*, a task, polls it until somebody is there again.
//!
//! Locks, the outermost first: a flight's state, the engine's, a flight's letter box.

pub mod mail;
pub mod pump;
pub mod replay;
pub mod tally;
pub mod work;

use crate::app::App;
use crate::gate::Inference;
use crate::record::RequestName;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use mail::Mail;
use pump::{Ending, Pump, Step};
use replay::{Found, Replay};
use seawall_core::classify::AttemptEnd;
use seawall_core::engine::Input;
use seawall_core::id::{DeploymentId, RequestId, TenantId};
use seawall_core::time::Instant;
use seawall_wire::headers;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use tally::Tally;
use work::{Begun, work};

/// The number of the minder among the readers.
const MINDER: u64 = u64::MAX;

/// One piece of work and its answer.
pub struct Flight {
    id: RequestId,
    /// The name of the request that began it.
    pub name: RequestName,
    /// What the driver tells it.
    pub mail: Arc<Mail>,
    tenant: TenantId,
    state: Mutex<State>,
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Flight").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

struct State {
    stage: Stage,
    head: Option<Arc<Head>>,
    replay: Replay,
    /// The places of the readers, by their numbers.
    readers: BTreeMap<u64, usize>,
    next_reader: u64,
    has_minder: bool,
    tally: Tally,
    /// Wakes everybody who waits.
    waker: Waker,
}

enum Stage {
    /// No answer yet.
    Working(Pin<Box<dyn Future<Output = Option<Begun>> + Send>>),
    /// The answer comes.
    Answering(Box<Pump>),
    /// Nothing more comes.
    Over(Ending),
}

/// How an answer begins.
#[derive(Debug)]
pub struct Head {
    /// Its status.
    pub status: StatusCode,
    /// Its headers, as far as they are for clients.
    pub headers: HeaderMap,
    /// The length to tell, where it is known.
    pub length: Option<u64>,
    /// Whether it is a stream of events.
    pub is_stream: bool,
    /// Attempts made.
    pub attempts: u32,
    /// Where it comes from.
    pub deployment: DeploymentId,
    /// When it came.
    pub at: Instant,
}

/// What a reader finds.
#[derive(Debug)]
pub enum Piece {
    /// The next piece.
    Data(Bytes),
    /// The end, and what it has cost.
    End(Ending, Tally),
    /// It was too far behind the others.
    Lost,
}

impl Flight {
    /// The flight that a request begins.
    pub fn new(app: &Arc<App>, id: RequestId, name: RequestName, head: Parts, taken: Box<Inference>) -> Arc<Self> {
        let mail = Arc::new(Mail::default());
        let tenant = taken.arrival.tenant;
        let working = Box::pin(work(Arc::clone(app), id, Arc::clone(&mail), head, taken));
        let state = State {
            stage: Stage::Working(working),
            head: None,
            replay: Replay::default(),
            readers: BTreeMap::new(),
            next_reader: 0,
            has_minder: false,
            tally: Tally::default(),
            waker: Waker::from(Arc::clone(&mail)),
        };
        Arc::new(Self { id, name, mail, tenant, state: Mutex::new(state) })
    }

    /// Ends whatever it does, without a word: the process goes away.
    pub fn abandon(&self) {
        self.lock().stage = Stage::Over(Ending::Nothing);
    }

    /// Does what can be done; ready where something has changed.
    fn advance(&self, app: &App, state: &mut State, reader: u64) -> Poll<()> {
        if self.mail.is_cancelled() && !matches!(state.stage, Stage::Over(_)) {
            self.cancel(app, state);
            return Poll::Ready(());
        }
        let waker = state.waker.clone();
        let mut context = Context::from_waker(&waker);
        match &mut state.stage {
            Stage::Over(_) => return Poll::Ready(()),
            Stage::Working(working) => match ready!(working.as_mut().poll(&mut context)) {
                Some(begun) => self.begin(app, state, begun),
                None => state.stage = Stage::Over(Ending::Nothing),
            },
            Stage::Answering(pump) => match ready!(pump.poll_next(&mut context)) {
                Step::Piece(piece) => {
                    let ending = pump.is_over().then(|| pump.complete(true));
                    self.push(app, state, piece);
                    if let Some(Step::End(end, ending)) = ending {
                        self.land(app, state, end, ending);
                    }
                }
                Step::End(end, ending) => self.land(app, state, end, ending),
            },
        }
        self.mail.wake_others(reader);
        Poll::Ready(())
    }

    fn begin(&self, app: &App, state: &mut State, begun: Begun) {
        let Begun { deployment, attempts, .. } = begun;
        let allowance = work::allowance(self.id, attempts, &begun.answer.headers);
        app.driver.tell_all(allowance.into_iter().chain([Input::AttemptHeaders(self.id, attempts)]));
        let mut answer = begun.answer;
        let head = Head {
            status: answer.status,
            headers: headers::towards_client(&answer.headers),
            length: answer.content_length(),
            is_stream: answer.scanner.is_some(),
            attempts,
            deployment,
            at: app.clock().now(),
        };
        state.head = Some(Arc::new(head));
        if let Some((body, connection)) = answer.rest.take() {
            let pump = Pump::new(Begun { answer, ..begun }, body, connection, app.cut.clone(), app.clock());
            state.stage = Stage::Answering(Box::new(pump));
            return;
        }
        state.tally = Tally::of_whole(answer.usage);
        let whole = answer.whole();
        if !whole.is_empty() {
            self.push(app, state, whole);
        }
        self.land(app, state, AttemptEnd::Completed, Ending::Complete);
    }

    fn push(&self, app: &App, state: &mut State, piece: Bytes) {
        let slowest = state.readers.values().min().copied();
        if state.replay.push(&app.bytes, piece, slowest) {
            app.driver.tell(Input::Sealed(self.id));
        }
    }

    /// The attempt of the answer has ended: everybody's ending is told by the engine.
    fn land(&self, app: &App, state: &mut State, end: AttemptEnd, ending: Ending) {
        if let Stage::Answering(pump) = &state.stage {
            state.tally = pump.tally();
        }
        state.stage = Stage::Over(ending);
        let Some(made) = self.mail.ended() else { return };
        if let Some(usage) = state.tally.usage {
            // A fallback's tokens are that model's.
            let pool = app.config.core().deployments[made.deployment.index()].pool;
            app.metrics.tokens(pool, self.tenant, usage);
        }
        app.metrics.attempt(made, end);
        let used = state.tally.used().map(|used| Input::Used(self.id, made.number, used));
        app.driver.tell_all(used.into_iter().chain([Input::AttemptEnded(self.id, made.number, end)]));
    }

    /// Nobody waits: closing the connection is what tells the upstream.
    fn cancel(&self, app: &App, state: &mut State) {
        self.land(app, state, AttemptEnd::ClientGone, Ending::Nothing);
    }

    /// A reader is gone.
    fn leave(self: &Arc<Self>, app: &Arc<App>, reader: u64) {
        self.mail.unregister(reader);
        let mut state = self.lock();
        state.readers.remove(&reader);
        if !state.readers.is_empty() {
            let slowest = state.readers.values().min().copied();
            return state.replay.trim(slowest);
        }
        if matches!(state.stage, Stage::Over(_)) || state.has_minder {
            return;
        }
        if self.mail.is_cancelled() {
            return self.cancel(app, &mut state);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            state.stage = Stage::Over(Ending::Nothing);
            return;
        };
        state.has_minder = true;
        drop(state);
        runtime.spawn(mind(Arc::clone(self), Arc::clone(app)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls a flight that nobody reads, until it is over or somebody does.
async fn mind(flight: Arc<Flight>, app: Arc<App>) {
    let minded = std::future::poll_fn(|context| {
        flight.mail.register(MINDER, context);
        let mut state = flight.lock();
        loop {
            if !state.readers.is_empty() || matches!(state.stage, Stage::Over(_)) {
                state.has_minder = false;
                return Poll::Ready(());
            }
            ready!(flight.advance(&app, &mut state, MINDER));
        }
    });
    if app.cut.run_until_cancelled(minded).await.is_none() {
        flight.abandon();
    }
    flight.mail.unregister(MINDER);
}

/// A client's place in the answer of a flight.
#[derive(Debug)]
pub struct Reader {
    /// Whose answer it reads.
    pub flight: Arc<Flight>,
    app: Arc<App>,
    number: u64,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.flight.leave(&self.app, self.number);
    }
}

impl Reader {
    /// A reader at the answer's beginning.
    pub fn new(flight: Arc<Flight>, app: Arc<App>) -> Self {
        let mut state = flight.lock();
        let number = state.next_reader;
        state.next_reader += 1;
        state.readers.insert(number, 0);
        drop(state);
        Self { flight, app, number }
    }

    /// The answer's head; `None`: there is no answer.
    pub fn poll_head(&self, context: &Context<'_>) -> Poll<Option<Arc<Head>>> {
        self.flight.mail.register(self.number, context);
        let mut state = self.flight.lock();
        loop {
            if let Some(head) = &state.head {
                return Poll::Ready(Some(Arc::clone(head)));
            }
            if let Stage::Over(_) = state.stage {
                return Poll::Ready(None);
            }
            ready!(self.flight.advance(&self.app, &mut state, self.number));
        }
    }

    /// The next piece of the answer.
    pub fn poll_piece(&self, context: &Context<'_>) -> Poll<Piece> {
        self.flight.mail.register(self.number, context);
        let mut state = self.flight.lock();
        loop {
            let place = state.readers.get(&self.number).copied().unwrap_or_default();
            match state.replay.at(place) {
                Found::Lost => return Poll::Ready(Piece::Lost),
                Found::Piece(piece) => {
                    state.readers.insert(self.number, place + 1);
                    return Poll::Ready(Piece::Data(piece));
                }
                Found::Nothing => {
                    if let Stage::Over(ending) = state.stage {
                        return Poll::Ready(Piece::End(ending, state.tally));
                    }
                    ready!(self.flight.advance(&self.app, &mut state, self.number));
                }
            }
        }
    }

    /// The whole answer, where all of it is there in one piece, and what it has cost.
    pub fn whole(&self) -> Option<(Bytes, Tally)> {
        let state = self.flight.lock();
        let is_complete = matches!(state.stage, Stage::Over(Ending::Complete));
        let whole = if state.replay.end() == 0 { Some(Bytes::new()) } else { state.replay.only() };
        whole.filter(|_| is_complete).map(|whole| (whole, state.tally))
    }

    /// What the answer has cost until now, where it has begun, and what the engine is to be told of that; nothing where
    /// it has been told already.
    pub fn so_far(&self) -> Option<(Tally, Option<Input>)> {
        let state = self.flight.lock();
        let tally = match &state.stage {
            Stage::Working(_) => return None,
            Stage::Over(_) => return Some((state.tally, None)),
            Stage::Answering(pump) => pump.tally(),
        };
        let made = self.flight.mail.made();
        let told = made.zip(tally.used()).map(|(made, used)| Input::Used(self.flight.id, made.number, used));
        Some((tally, told))
    }

    /// What the answer has cost, where it is complete and this reader has all of it. A client may close as soon as it
    /// has the terminator: that ends the answer where nobody else reads it.
    pub fn has_all(&self) -> Option<Tally> {
        let mut state = self.flight.lock();
        if state.readers.get(&self.number) != Some(&state.replay.end()) {
            return None;
        }
        match &mut state.stage {
            Stage::Over(Ending::Complete) => Some(state.tally),
            Stage::Answering(pump) if pump.has_ended() => {
                let tally = pump.tally();
                if state.readers.len() == 1
                    && let Stage::Answering(pump) = &mut state.stage
                    && let Step::End(end, ending) = pump.complete(false)
                {
                    self.flight.land(&self.app, &mut state, end, ending);
                }
                Some(tally)
            }
            _ => None,
        }
    }
}
