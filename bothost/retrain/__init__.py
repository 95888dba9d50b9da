"""From logged hands to a better model: dataset, training job, gate."""
