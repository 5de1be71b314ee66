//! Places for records that come and go; a record that is over never has the same place as a later one.

/// A place: index in the low half, generation in the high half.
pub type Place = u64;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Records by place.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    live: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), live: 0 }
    }
}

const fn index(place: Place) -> usize {
    (place & 0xffff_ffff) as usize
}

const fn generation(place: Place) -> u32 {
    (place >> 32) as u32
}

impl<T> Slab<T> {
    /// Puts a record somewhere.
    pub fn insert(&mut self, value: T) -> Place {
        self.live += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 records")
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        (u64::from(slot.generation) << 32) | u64::from(index)
    }

    /// The record at a place; `None`: it is over.
    pub fn get(&self, place: Place) -> Option<&T> {
        self.slots.get(index(place)).filter(|slot| slot.generation == generation(place))?.value.as_ref()
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.slots.get_mut(index(place)).filter(|slot| slot.generation == generation(place))?.value.as_mut()
    }

    /// Takes a record out.
    pub fn remove(&mut self, place: Place) -> Option<T> {
        let slot = self.slots.get_mut(index(place)).filter(|slot| slot.generation == generation(place))?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(u32::try_from(index(place)).expect("an index has 32 bits"));
        self.live -= 1;
        Some(value)
    }

    /// Every record with its place, in the order of the places.
    pub fn places(&self) -> impl Iterator<Item = (Place, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let place = (u64::from(slot.generation) << 32) | index as u64;
            slot.value.as_ref().map(|value| (place, value))
        })
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_never_given_twice() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_ne!(first, second);
        assert_eq!((slab.get(first), slab.get(second), slab.len()), (None, Some(&'b'), 1));
        assert_eq!(slab.remove(first), None);
    }
}
