collapse-above-rate-title = Le tunnel transporte moins quand on lui demande plus
