//! A dealer from its start to its end, however that comes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dealer_sim::dealer::{DealerSpec, Planted};
use dealer_sim::inventory::{Inventory, Profile, Spec};
use dealer_sim::ledger::{Ledger, Reader};
use dealer_sim::server::hosted::Hosted;
use dealer_sim::server::leads_file::{SyncPolicy, keep, recover};
use dealer_sim::world::{Blueprint, FaultSpec, Stock as Vehicles, World};
use tokio::task::JoinSet;

use super::checks::Log;
use super::disk::{Disk, File};
use super::network::Network;

/// What every life is made of.
pub(crate) struct Stock {
    profile: Profile,
    inventory: Arc<Inventory>,
}

const DAY: &str = "2026-01-01";

impl Stock {
    pub(crate) fn new() -> Stock {
        let profile = Profile::built_in().unwrap();
        let spec = Spec { vehicles: 20, ..Spec::new(7, DAY.parse().unwrap()) };
        let inventory = Arc::new(Inventory::generate(&spec, &profile).unwrap());
        Stock { profile, inventory }
    }
}

pub(crate) struct Life {
    hosted: Rc<Hosted>,
    network: Rc<Network>,
    /// Its connections and its writer; they end with it.
    tasks: JoinSet<()>,
}

impl Life {
    /// Starts a dealer over what is on the disk. `process` is a number that no other life has.
    pub(crate) fn begin(
        stock: &Stock,
        planted: Planted,
        process: u64,
        policy: SyncPolicy,
        disk: &Rc<RefCell<Disk>>,
        network: &Rc<Network>,
    ) -> Life {
        let ledger = Arc::new(Ledger::default());
        let spec = DealerSpec { seed: 7, planted, ..DealerSpec::default() };
        let blueprint = Blueprint {
            amendments: Default::default(),
            spec,
            dealers: 1,
            profile: stock.profile.clone(),
            stock: Vehicles::Given(stock.inventory.clone()),
            day: DAY.parse().unwrap(),
            threads: 1,
            faults: FaultSpec::default(),
            ledger: Some(ledger.clone()),
        };
        let hosted = Rc::new(Hosted::open(blueprint, process, network.time()).unwrap());
        let length = {
            let mut disk = disk.borrow_mut();
            let bytes = disk.bytes.clone();
            let mut reader = Reader::new(&bytes[..]);
            recover(&mut reader, hosted.world(), &ledger)
                .unwrap_or_else(|error| panic!("the file cannot be read: {error}"));
            disk.cut(reader.whole() as usize);
            reader.whole()
        };
        let mut tasks = JoinSet::new();
        let mut file = File(disk.clone());
        tasks.spawn_local(async move { keep(&ledger, &mut file, length, policy).await });
        let mut accepted = network.listen();
        let serving = hosted.clone();
        tasks.spawn_local(async move {
            let mut connections = JoinSet::new();
            while let Some(stream) = accepted.recv().await {
                let serving = serving.clone();
                connections.spawn_local(async move { serving.serve(stream).await });
            }
        });
        Life { hosted, network: network.clone(), tasks }
    }

    pub(crate) fn world(&self) -> &World {
        self.hosted.world()
    }

    /// The process is gone, in the middle of whatever it did.
    pub(crate) fn end(mut self, log: &Rc<RefCell<Log>>) {
        self.network.close();
        self.tasks.abort_all();
        log.borrow_mut().answered += self.hosted.world().traffic.requests.load(Ordering::Relaxed);
    }
}
