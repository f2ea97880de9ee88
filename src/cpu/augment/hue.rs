//! The hue: to HSV and back. Pillow has 8 bits for each of the three, torchvision float32.

use super::{Library, Rgb, tables};

/// Moves the hue of all pixels; 1 is the whole circle.
pub(super) fn shift(image: &mut [Rgb], amount: f32, library: Library) {
    if library == Library::Pillow {
        // Cut to a whole number, which wraps.
        let amount = (f64::from(amount) * 255.0) as i32 as u8;
        for pixel in image {
            let [hue, saturation, value] = to_bytes(*pixel);
            *pixel = of_bytes([hue.wrapping_add(amount), saturation, value]);
        }
        return;
    }
    let is_v2 = library == Library::TorchvisionV2;
    for pixel in image {
        let [hue, saturation, value] = to_floats(*pixel, is_v2);
        let moved = (hue + amount) % 1.0;
        let moved = if moved < 0.0 { moved + 1.0 } else { moved };
        *pixel = of_floats([moved, saturation, value], is_v2);
    }
}

/// Pillow's HSV of a pixel.
fn to_bytes([red, green, blue]: Rgb) -> Rgb {
    let (largest, smallest) = (red.max(green).max(blue), red.min(green).min(blue));
    if largest == smallest {
        return [0, 0, largest];
    }
    let range = f32::from(largest - smallest);
    let [from_red, from_green, from_blue] =
        [red, green, blue].map(|level| f32::from(largest - level) / range);
    let [wide_red, wide_green, wide_blue] = [from_red, from_green, from_blue].map(f64::from);
    let sixths = if red == largest {
        from_blue - from_green
    } else if green == largest {
        (2.0 + wide_red - wide_blue) as f32
    } else {
        (4.0 + wide_green - wide_red) as f32
    };
    let hue = ((f64::from(sixths) / 6.0 + 1.0) % 1.0) as f32;
    let saturation = range / f32::from(largest);
    [(f64::from(hue) * 255.0) as u8, (f64::from(saturation) * 255.0) as u8, largest]
}

/// The pixel of Pillow's HSV.
fn of_bytes([hue, saturation, value]: Rgb) -> Rgb {
    if saturation == 0 {
        return [value; 3];
    }
    let sixths = f64::from(hue) * 6.0 / 255.0;
    let sector = sixths.floor();
    let (part, saturation) = ((sixths - sector) as f32, (f64::from(saturation) / 255.0) as f32);
    let scaled = |factor: f64| (f64::from(value) * factor).round() as u8;
    let low = scaled(1.0 - f64::from(saturation));
    let falling = scaled(1.0 - f64::from(saturation * part));
    let rising = scaled(1.0 - f64::from(saturation) * (1.0 - f64::from(part)));
    ordered(sector as u32, [value, low, falling, rising])
}

/// What the sector of a hue makes of the levels.
fn ordered<T>(sector: u32, [value, low, falling, rising]: [T; 4]) -> [T; 3] {
    match sector % 6 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    }
}

/// torchvision's HSV of a pixel.
fn to_floats(pixel: Rgb, is_v2: bool) -> [f32; 3] {
    let [red, green, blue] = pixel.map(|level| tables::unit(level, is_v2));
    let (largest, smallest) = (red.max(green).max(blue), red.min(green).min(blue));
    let range = largest - smallest;
    let or_one = |divisor: f32| if range == 0.0 { 1.0 } else { divisor };
    let [from_red, from_green, from_blue] = [red, green, blue].map(|level| (largest - level) / or_one(range));
    let sixths = if largest == red {
        from_blue - from_green
    } else if largest == green {
        2.0 + from_red - from_blue
    } else {
        4.0 + from_green - from_red
    };
    let circle = if is_v2 { sixths * (1.0 / 6.0) } else { sixths / 6.0 };
    [(circle + 1.0) % 1.0, range / or_one(largest), largest]
}

/// The pixel of torchvision's HSV.
fn of_floats([hue, saturation, value]: [f32; 3], is_v2: bool) -> Rgb {
    let sixths = hue * 6.0;
    let sector = sixths.floor();
    let part = sixths - sector;
    let low = value * (1.0 - saturation);
    let falling = value * (1.0 - saturation * part);
    let rising = if is_v2 {
        (saturation * part + (1.0 - saturation)) * value
    } else {
        value * (1.0 - saturation * (1.0 - part))
    };
    let [low, falling, rising] = [low, falling, rising].map(|level| level.clamp(0.0, 1.0));
    // A little less than 256: 1 becomes 255, and fractions are cut.
    ordered(sector as u32, [value, low, falling, rising]).map(|level| (level * 255.999) as u8)
}
